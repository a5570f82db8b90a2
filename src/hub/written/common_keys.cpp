#include "hub/written/common_keys.hpp"

#include <algorithm>
#include <cmath>

#include "hub/tables/common.hpp"

namespace tessera::detail::hub {

namespace {

// Returns whether two lists of divisors are equal up to the rounding of float32 (converters compute divisors in float32).
bool are_close(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::ranges::equal(a, b, [](float x, float y) { return std::fabs(x - y) <= 1e-5f * std::fabs(y); });
}

// Returns the parameters of Llama 3.1's rope ("llama3") for which llama3_divisors() computes the divisors `wanted`. A GGUF file has only
// the divisors, but config.json needs the parameters. Tries the parameters of released models.
Json llama3_object(const Filling& f, const std::vector<float>& wanted) {
  constexpr double kFactors[][2] = {{1.0, 4.0}, {1.0, 2.0}, {1.0, 8.0}, {2.0, 4.0}, {0.5, 4.0}};  // low_freq_factor, high_freq_factor
  const double factor = static_cast<double>(*std::ranges::max_element(wanted));
  const double theta = f.number(Setting::rope_theta).value_or(10000.0);
  for (const bool exact : {true, false}) {
    for (const auto& [low, high] : kFactors) {
      for (std::int64_t original = 16; original <= (1 << 20); original *= 2) {
        const auto computed = llama3_divisors(theta, 2 * static_cast<std::int64_t>(wanted.size()), factor, low, high, static_cast<double>(original));
        if (exact ? computed != wanted : !are_close(computed, wanted)) continue;
        Json object = Json::object();
        object.set("rope_type", "llama3");
        object.set("factor", f.number_json(factor));
        object.set("low_freq_factor", low);
        object.set("high_freq_factor", high);
        object.set("original_max_position_embeddings", original);
        return object;
      }
    }
  }
  return {};  // the check of the written folder then reports that the tensor is missing
}

Json longrope_object(const Filling& f, const std::vector<float>& short_factors, const std::vector<float>& long_factors) {
  const auto list = [&](const std::vector<float>& values) {
    Json numbers = Json::array();
    for (const float value : values) numbers.elements()->push_back(f.number_json(static_cast<double>(value)));
    return numbers;
  };
  Json object = Json::object();
  object.set("rope_type", "longrope");
  object.set("short_factor", list(short_factors));
  object.set("long_factor", list(long_factors));
  if (const auto original = f.integer(Setting::original_context)) object.set("original_max_position_embeddings", *original);
  object.set("attention_factor", f.number_json(f.number(Setting::rope_magnitude).value_or(1.0)));
  return object;
}

}  // namespace

Json rope_scaling_of(const Filling& f) {
  if (const auto divisors = f.values(Role::rope_freqs); !divisors.empty()) return llama3_object(f, divisors);
  const auto short_factors = f.values(Role::rope_factors_short), long_factors = f.values(Role::rope_factors_long);
  if (!long_factors.empty()) return longrope_object(f, short_factors, long_factors);
  const std::string type = f.text(Setting::rope_scaling);
  const auto old_factor = f.number(Setting::rope_scale_linear);
  Json object = Json::object();
  const auto copy = [&](std::string_view key, Setting setting) {
    if (const auto value = f.number(setting)) object.set(key, f.number_json(*value));
  };
  if (type == "linear" || (type.empty() && old_factor)) {
    object.set("rope_type", "linear");
    copy("factor", type.empty() ? Setting::rope_scale_linear : Setting::rope_scaling_factor);
    return object;
  }
  if (type != "yarn") return {};
  object.set("rope_type", "yarn");
  copy("factor", Setting::rope_scaling_factor);
  if (const auto original = f.integer(Setting::original_context)) object.set("original_max_position_embeddings", *original);
  copy("beta_fast", Setting::yarn_beta_fast);
  copy("beta_slow", Setting::yarn_beta_slow);
  copy("attention_factor", Setting::yarn_magnitude);
  if (const auto multiplier = f.number(Setting::yarn_log_multiplier)) {
    const double said = f.architecture.is_latent ? *multiplier / 0.1 : *multiplier;  // the setting is a tenth (map_latent())
    const double rounded = std::round(said * 1e4) / 1e4;
    object.set("mscale", std::fabs(rounded - said) < 1e-6 ? rounded : said);
    object.set("mscale_all_dim", std::fabs(rounded - said) < 1e-6 ? rounded : said);
  }
  if (f.architecture.yarn_ramp == YarnRamp::exact) object.set("truncate", false);
  return object;
}

void fill_rope(Filling& f) {
  const double usual = f.spec.ropes.empty() ? 10000.0 : f.spec.ropes.front().theta;
  const double theta = f.number(Setting::rope_theta).value_or(usual);
  f.set_number("rope_theta", theta);
  Json scaling = rope_scaling_of(f);
  // Layers with a window may have the same rope without scaling. Then each kind of layer gets an object (transformers 5).
  const MixedWindows& windows = f.architecture.windows;
  if (!scaling.is_null() && windows.rope == WindowedRope::unscaled && windows.theta == 0.0) {
    Json plain = Json::object(), both = Json::object();
    plain.set("rope_type", "default");
    plain.set("rope_theta", f.number_json(theta));
    scaling.set("rope_theta", f.number_json(theta));
    both.set("full_attention", std::move(scaling));
    both.set("sliding_attention", std::move(plain));
    f.set("rope_parameters", std::move(both));
    scaling = {};
  }
  f.set("rope_scaling", std::move(scaling));
}

void fill_temperature(Filling& f) {
  Json object = rope_scaling_of(f);
  if (object.is_null()) {
    object.set("rope_type", "default");
    if (const auto original = f.integer(Setting::original_context)) object.set("original_max_position_embeddings", *original);
  }
  object.set("rope_theta", f.number_json(f.number(Setting::rope_theta).value_or(10000.0)));
  object.set("llama_4_scaling_beta", f.number_json(f.spec.temperature_rate));
  f.set("rope_parameters", std::move(object));
  f.set("rope_scaling", Json());  // null, because transformers would use it instead of rope_parameters
}

void fill_partial_rope(Filling& f, std::string_view key) {
  const auto dim = f.integer(Setting::rope_dim);
  const std::uint32_t head = f.spec.layers.empty() ? 0 : f.spec.layers.front().key_dim;
  std::uint32_t width = head;
  for (const LayerSpec& layer : f.spec.layers) width = std::max(width, layer.key_dim);
  if (!dim || width == 0) return;
  double share = static_cast<double>(*dim) / width;
  if (static_cast<std::int64_t>(share * width) < *dim) share = (static_cast<double>(*dim) + 0.25) / width;
  f.set(key, share);
}

void fill_window(Filling& f) {
  const auto windowed = f.windowed_layers();
  const std::int64_t usual = f.architecture.windows.length, length = f.integer(Setting::window).value_or(usual);
  // In architectures that mix layers, layer_types says which layers have the window. (It may be none of them.)
  const bool is_used = !windowed.empty() || f.architecture.windows.period != 0;
  f.set("sliding_window", is_used && length > 0 ? Json(length) : Json());
}

void fill_window_types(Filling& f, WhenAlike when) {
  const auto windowed = f.windowed_layers();
  const bool is_mixed = std::ranges::find(windowed, false) != windowed.end();
  if (!is_mixed && when == WhenAlike::leave_out) return;
  f.set("layer_types", texts_of_layers(f.spec.n_layers(), [&](std::size_t layer) {
    return layer < windowed.size() && windowed[layer] ? "sliding_attention" : "full_attention";
  }));
}

double inverse_square(double scale) {
  const double number = 1.0 / (scale * scale), whole = std::round(number);
  return static_cast<float>(1.0 / std::sqrt(whole)) == static_cast<float>(scale) ? whole : number;
}

}  // namespace tessera::detail::hub
