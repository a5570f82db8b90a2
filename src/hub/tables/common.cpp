#include "hub/tables/common.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/math.hpp"
#include "hub/written/common_keys.hpp"

namespace tessera::detail::hub {

void map_common(Mapping& m) {
  m.copy_integer(Setting::d_model, "hidden_size");
  m.copy_integer(Setting::n_layers, "num_hidden_layers");
  m.copy_integer(Setting::n_heads, "num_attention_heads");
  m.copy_integer(Setting::n_kv_heads, "num_key_value_heads");
  m.copy_integer(Setting::ffn_dim, "intermediate_size");
  m.copy_integer(Setting::context, "max_position_embeddings");
  m.copy_integer(Setting::vocab_size, "vocab_size");
  m.copy_integer(Setting::key_dim, "head_dim");
  m.copy_integer(Setting::value_dim, "head_dim");
  m.set(Setting::rms_norm_eps, 1e-6, "rms_norm_eps");  // the default of transformers' classes
  m.copy_number(Setting::rms_norm_eps, "rms_norm_eps");
}

void expect_silu(Mapping& m) { m.expect_text("hidden_act", {"silu", "swish"}); }

std::uint32_t map_groups(Mapping& m) {
  const auto groups = m.integer("num_hidden_groups");
  const std::int64_t layers = m.given(Setting::n_layers);
  if (!groups || *groups == layers) return 0;
  m.expect_integer("inner_group_num", 1);
  if (*groups < 1 || *groups > layers || layers > kMostListed) {
    m.refuse(ErrorCode::corrupt_file, "num_hidden_groups", "{} groups of {} layers; expected 1 group to one for each layer", *groups, layers);
    return 0;
  }
  const auto n_groups = static_cast<std::uint32_t>(*groups), n_layers = static_cast<std::uint32_t>(layers);
  std::vector<std::int32_t> owners;
  for (std::uint32_t i = 0; i < n_layers; ++i) {
    const bool is_first = i == 0 || group_of(i, n_groups, n_layers) != group_of(i - 1, n_groups, n_layers);
    owners.push_back(is_first ? static_cast<std::int32_t>(i) : owners.back());
  }
  m.set(Setting::weights_of, std::move(owners), "num_hidden_groups");
  return n_groups;
}

std::int64_t head_dim(const Mapping& m) noexcept {
  const std::int64_t own = m.given(Setting::key_dim), heads = m.given(Setting::n_heads);
  return own > 0 ? own : heads > 0 ? m.given(Setting::d_model) / heads : 0;
}

const Json* rope_object(const Mapping& m, std::string_view kind) {
  const Json* all = m.config.find("rope_parameters");
  if (all == nullptr) return m.config.find("rope_scaling");
  const Json* own = find_in(all, kind);
  return own != nullptr && own->members() != nullptr ? own : all;
}

std::vector<float> llama3_divisors(double theta, std::int64_t dim, double factor, double low, double high, double original) {
  constexpr double kTurn = 6.283185307179586;
  std::vector<float> result;
  for (std::int64_t i = 0; i < dim; i += 2) {
    const double wavelength = kTurn * math::pow(theta, static_cast<double>(i) / static_cast<double>(dim));
    if (wavelength < original / high) {
      result.push_back(1.0f);
    } else if (wavelength > original / low) {
      result.push_back(static_cast<float>(factor));
    } else {
      const double smooth = (original / wavelength - low) / (high - low);
      result.push_back(static_cast<float>(1.0 / ((1.0 - smooth) / factor + smooth)));
    }
  }
  return result;
}

namespace {

// The keys of one rope object.
class Rope {
 public:
  Rope(Mapping& m, const Json* object) : m_(m), object_(object) {}

  [[nodiscard]] std::optional<double> number(std::string_view key) { return m_.number_of(find_in(object_, key), key); }
  [[nodiscard]] std::string_view type() {
    for (const std::string_view key : {"rope_type", "type"}) {
      if (const auto text = m_.text_of(find_in(object_, key), key)) return *text;
    }
    return "default";
  }
  [[nodiscard]] std::optional<double> original_context() {
    const auto own = number("original_max_position_embeddings");
    return own ? own : m_.number("original_max_position_embeddings");
  }

  void map_linear() {
    m_.set(Setting::rope_scaling, "linear", "rope_scaling.rope_type");
    if (const auto factor = number("factor")) m_.set(Setting::rope_scaling_factor, *factor, "rope_scaling.factor");
  }

  void map_yarn() {
    m_.set(Setting::rope_scaling, "yarn", "rope_scaling.rope_type");
    const double factor = number("factor").value_or(1.0);
    m_.set(Setting::rope_scaling_factor, factor, "rope_scaling.factor");
    if (const auto original = original_context()) {
      m_.set(Setting::original_context, static_cast<std::int64_t>(*original), "rope_scaling.original_max_position_embeddings");
    }
    if (const auto fast = number("beta_fast")) m_.set(Setting::yarn_beta_fast, *fast, "rope_scaling.beta_fast");
    if (const auto slow = number("beta_slow")) m_.set(Setting::yarn_beta_slow, *slow, "rope_scaling.beta_slow");
    const auto scale = number("mscale"), all = number("mscale_all_dim");
    if (all && *all != 0.0) m_.set(Setting::yarn_log_multiplier, *all, "rope_scaling.mscale_all_dim");
    if (const auto said = number("attention_factor")) {
      m_.set(Setting::yarn_magnitude, *said, "rope_scaling.attention_factor");
    } else if (scale && all && *scale != 0.0 && *all != 0.0 && *scale != *all && factor > 1.0) {
      const auto growth = [factor](double by) { return 0.1 * by * math::log(factor) + 1.0; };
      m_.set(Setting::yarn_magnitude, growth(*scale) / growth(*all), "rope_scaling.mscale");
    }
  }

  void map_llama3(double theta) {
    const auto factor = number("factor"), low = number("low_freq_factor"), high = number("high_freq_factor"), original = original_context();
    if (!factor || !low || !high || !original || *high <= *low || *low <= 0.0 || *factor <= 0.0 || !(theta > 0.0)) {
      m_.refuse(ErrorCode::corrupt_file, "rope_scaling",
                "llama3 needs factor, low_freq_factor, high_freq_factor and original_max_position_embeddings, all positive");
      return;
    }
    const std::int64_t dim = head_dim(m_);
    if (dim > 0 && dim <= (1 << 16)) m_.rope_divisors = llama3_divisors(theta, dim, *factor, *low, *high, *original);
  }

  void map_longrope() {
    m_.short_factors = m_.numbers_of(find_in(object_, "short_factor"), "rope_scaling.short_factor");
    m_.long_factors = m_.numbers_of(find_in(object_, "long_factor"), "rope_scaling.long_factor");
    const double original = original_context().value_or(static_cast<double>(m_.given(Setting::context)));
    m_.set(Setting::original_context, static_cast<std::int64_t>(original), "original_max_position_embeddings");
    const double grown = number("factor").value_or(original > 0.0 ? static_cast<double>(m_.given(Setting::context)) / original : 1.0);
    const double usual = grown > 1.0 && original > 1.0 ? std::sqrt(1.0 + math::log(grown) / math::log(original)) : 1.0;
    m_.set(Setting::rope_magnitude, number("attention_factor").value_or(usual), "rope_scaling.attention_factor");
  }

 private:
  Mapping& m_;
  const Json* object_;
};

}  // namespace

void map_rope(Mapping& m, std::string_view kind) {
  if (m.filling != nullptr) fill_rope(*m.filling);
  Rope rope(m, rope_object(m, kind));
  const auto own = rope.number("rope_theta");
  const double theta = (own ? own : m.number("rope_theta")).value_or(10000.0);
  m.set(Setting::rope_theta, theta, "rope_theta");
  const std::string_view type = rope.type();
  // Two types need nothing here. "dynamic" changes the rope's base only for sequences that are longer than the context of the training,
  // and no session is longer than that. "proportional" is read by the table of Gemma 4.
  if (type == "linear") rope.map_linear();
  else if (type == "yarn") rope.map_yarn();
  else if (type == "llama3") rope.map_llama3(theta);
  else if (type == "longrope" || type == "su") rope.map_longrope();
  else if (type != "default" && type != "none" && type != "dynamic" && type != "mrope" && type != "proportional") {
    m.refuse(ErrorCode::unsupported, "rope_scaling", "the type \"{}\" is not implemented; default, linear, yarn, llama3 and longrope are",
             type.substr(0, 40));
  }
}

void map_partial_rope(Mapping& m) {
  if (m.filling != nullptr) fill_partial_rope(*m.filling);
  const Json* object = rope_object(m, "full_attention");
  auto share = m.number_of(find_in(object, "partial_rotary_factor"), "partial_rotary_factor");
  if (!share) share = m.number("partial_rotary_factor");
  const auto dim = static_cast<double>(head_dim(m)) * share.value_or(1.0);
  if (share && dim >= 0.0 && dim < 1e9) m.set(Setting::rope_dim, static_cast<std::int64_t>(dim), "partial_rotary_factor");
}

namespace {

// Returns for each layer whether it has a window (1) or not (0), by layer_types; an empty list if config.json does not have this key.
std::vector<std::uint8_t> windowed_layers(Mapping& m) {
  std::vector<std::uint8_t> windowed;
  for (const std::string_view kind : m.texts("layer_types")) windowed.push_back(kind == "sliding_attention" ? 1 : 0);
  return windowed;
}

// Sets the window for the layers that `windowed` names; for all layers if `windowed` is empty.
void set_windows(Mapping& m, const std::vector<std::uint8_t>& windowed, std::string_view key) {
  const auto window = m.integer("sliding_window");
  if (!window || *window <= 0) return;
  const auto count = std::ranges::count(windowed, std::uint8_t{1});
  if (count == static_cast<std::ptrdiff_t>(windowed.size())) return m.set(Setting::window, *window, "sliding_window");
  if (count == 0) return;
  const auto length = static_cast<std::int32_t>(std::min<std::int64_t>(*window, std::numeric_limits<std::int32_t>::max()));
  std::vector<std::int32_t> lengths;
  for (const std::uint8_t has_window : windowed) lengths.push_back(has_window != 0 ? length : 0);
  m.set(Setting::window, std::move(lengths), key);
}

}  // namespace

void map_windows(Mapping& m) {
  if (m.filling != nullptr) {
    fill_window(*m.filling);
    fill_window_types(*m.filling, WhenAlike::leave_out);
  }
  set_windows(m, windowed_layers(m), "layer_types");
}

void map_windows_if(Mapping& m, bool (*usual)(Mapping&, std::int64_t layer)) {
  if (m.filling != nullptr) {
    m.filling->set("use_sliding_window", !m.filling->windowed_layers().empty());
    fill_window(*m.filling);
    fill_window_types(*m.filling, WhenAlike::always);
  }
  if (!m.boolean("use_sliding_window").value_or(false)) return;
  auto windowed = windowed_layers(m);
  const std::int64_t layers = windowed.empty() ? std::min<std::int64_t>(m.given(Setting::n_layers), kMostListed) : 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) windowed.push_back(usual(m, layer) ? 1 : 0);
  set_windows(m, windowed, "layer_types");
}

void map_mixed_windows(Mapping& m) {
  if (m.filling != nullptr) {
    fill_window(*m.filling);
    fill_window_types(*m.filling, WhenAlike::always);
  }
  const auto window = m.integer("sliding_window");
  if (!window || *window <= 0) return;
  m.set(Setting::window, *window, "sliding_window");
  // The list is set even if all its elements are equal, because a layer without a window may have another rope, or none.
  if (auto windowed = windowed_layers(m); !windowed.empty()) m.set(Setting::window_pattern, std::move(windowed), "layer_types");
}

void map_layer_norm(Mapping& m, std::string_view key) {
  m.settings.remove(Setting::rms_norm_eps);
  m.set(Setting::layer_norm_eps, 1e-5, key);
  m.copy_number(Setting::layer_norm_eps, key);
}

void map_experts(Mapping& m) {
  for (const std::string_view key : {"num_experts", "num_local_experts", "n_routed_experts"}) m.copy_integer(Setting::n_experts, key);
  m.copy_integer(Setting::n_used_experts, "num_experts_per_tok");
  m.copy_integer(Setting::expert_dim, "moe_intermediate_size");
}

void map_grouped_experts(Mapping& m) {
  map_experts(m);
  if (m.filling != nullptr) {
    m.filling->set("n_group", m.filling->integer(Setting::n_expert_groups).value_or(1));
    m.filling->set("topk_group", m.filling->integer(Setting::n_used_expert_groups).value_or(1));
  }
  m.copy_integer(Setting::n_shared_experts, "n_shared_experts");
  m.copy_integer(Setting::n_dense_layers, "first_k_dense_replace");
  m.copy_number(Setting::expert_scale, "routed_scaling_factor");
  m.copy_boolean(Setting::renormalise_experts, "norm_topk_prob");
  m.expect_integer("moe_layer_freq", 1);
  if (m.integer("n_group").value_or(1) > 1) {
    m.copy_integer(Setting::n_expert_groups, "n_group");
    m.copy_integer(Setting::n_used_expert_groups, "topk_group");
  }
  const auto kinds = m.texts("mlp_layer_types");
  if (kinds.empty()) return;
  const auto sparse = std::ranges::find(kinds, std::string_view("sparse"));
  if (std::find(sparse, kinds.end(), std::string_view("dense")) != kinds.end()) {
    m.refuse(ErrorCode::unsupported, "mlp_layer_types", "a dense layer follows one with experts");
  }
  m.set(Setting::n_dense_layers, static_cast<std::int64_t>(sparse - kinds.begin()), "mlp_layer_types");
}

}  // namespace tessera::detail::hub
