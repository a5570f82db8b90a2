#include "model/spec/parts/rope_spec.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <tessera/extend/kv/kv_layout.hpp>

#include "core/math.hpp"
#include "core/printable.hpp"

namespace tessera::detail {

namespace {

bool attends(const LayerSpec& layer) noexcept { return layer.mixer == Mixer::attention; }

// Returns how many elements of each head the rope with index `rope` rotates. `setting` is read only if a layer uses the rope: the files
// of Nemotron-H have the setting although no head of the model is rotated.
Result<std::uint32_t> rope_dim(const SettingReader& from, std::uint32_t rope, Setting setting, const ModelSpec& spec) {
  std::uint32_t key_dim = 0, first = 0;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.rope != rope) continue;
    if (key_dim == 0) first = static_cast<std::uint32_t>(&layer - spec.layers.data());
    if (key_dim == 0) key_dim = layer.key_dim;
    if (layer.key_dim == key_dim) continue;
    return from.unsupported(Setting::n_heads, "heads of {} and of {} elements: layers of one rope need the same", key_dim, layer.key_dim);
  }
  if (key_dim == 0) return std::max(std::ranges::find_if(spec.layers, attends)->key_dim / 2 * 2, 2u);
  TESSERA_TRY(const std::uint64_t dim, from.layer_number(setting, first, spec.n_layers(), key_dim));
  for (std::uint32_t i = first; i < spec.n_layers() && from.settings.has_list(setting); ++i) {
    TESSERA_TRY(const std::uint64_t own, from.layer_number(setting, i, spec.n_layers(), key_dim));
    if (spec.layers[i].rope == rope && own != dim) {
      return from.unsupported(setting, "{} elements in layer {}, {} in layer {}: layers of one rope need the same", dim, first, own, i);
    }
  }
  if (dim == 0 || dim % 2 != 0 || dim > key_dim) {
    return from.corrupt(setting, "the value is {}; expected an even number up to the head's {}", dim, key_dim);
  }
  return static_cast<std::uint32_t>(dim);
}

// Returns the factor by which YaRN multiplies the rotated elements. If the file states this factor (attention_factor of transformers), it is
// used as stated, as in transformers. (llama.cpp ignores it.) If not, the function computes a number that grows with the logarithm of YaRN's
// scaling `factor`, and also depends on Setting::yarn_log_multiplier, if the file has this setting.
Result<double> yarn_magnitude(const SettingReader& from, double factor) {
  if (from.settings.has(Setting::yarn_magnitude)) return from.positive(Setting::yarn_magnitude, 1.0);
  const auto growth = [factor](double by) { return factor > 1.0 ? 0.1 * by * math::log(factor) + 1.0 : 1.0; };
  TESSERA_TRY(const double by, from.positive_or_none(Setting::yarn_log_multiplier, 0.0));
  return growth(1.0) / (by != 0.0 ? growth(by) : 1.0);
}

// Reads YaRN's settings (Peng et al. 2023). YaRN decides for each rope pair by the turns that the pair makes within the context of the
// model's first training. More than beta_fast turns: the pair keeps its frequency. Fewer than beta_slow turns: the frequency is divided
// by YaRN's factor. Between the two: it is divided by a number that rises from 1 to the factor.
Status read_yarn(const SettingReader& from, const ModelSpec& spec, RopeSpec& rope) {
  TESSERA_TRY(rope.linear_factor, from.positive(Setting::rope_scaling_factor, 1.0));
  TESSERA_TRY(const std::uint64_t original, from.original_context(spec.context));
  TESSERA_TRY(const double fast, from.positive(Setting::yarn_beta_fast, 32.0));
  TESSERA_TRY(const double slow, from.positive(Setting::yarn_beta_slow, 1.0));
  TESSERA_TRY(const double share, from.settings.number_or(Setting::yarn_share, 1.0));
  if (share != 1.0) return from.unsupported(Setting::yarn_share, "the value is {}; 1 alone is implemented", share);
  if (rope.theta == 1.0) return from.corrupt(Setting::rope_theta, "YaRN with a base of 1");
  const auto pair_that_turns = [&](double times) {  // returns the (fractional) pair that makes `times` turns in the original context
    constexpr double kTurn = 6.283185307179586;
    return rope.dim * math::log(static_cast<double>(original) / (times * kTurn)) / (2.0 * math::log(rope.theta));
  };
  double first = pair_that_turns(fast), last = pair_that_turns(slow);
  if (from.table.yarn_ramp == YarnRamp::whole_pairs) first = std::floor(first), last = std::ceil(last);
  rope.first_slowed = std::max(0.0, first);
  rope.all_slowed = std::min(rope.dim - 1.0, last);
  TESSERA_TRY(const double magnitude, yarn_magnitude(from, rope.linear_factor));
  rope.magnitude *= static_cast<float>(magnitude);
  return {};
}

Status read_scaling(const SettingReader& from, const ModelSpec& spec, RopeSpec& rope) {
  TESSERA_TRY(const double magnitude, from.positive(Setting::rope_magnitude, 1.0));
  rope.magnitude = static_cast<float>(magnitude);
  TESSERA_TRY(const auto type, from.settings.string_or(Setting::rope_scaling, ""));
  const bool old_style = from.settings.has(Setting::rope_scale_linear);  // a setting that converters wrote when GGUF's version was 1
  if (type == "linear" || (type.empty() && old_style)) {
    const Setting setting = old_style && type.empty() ? Setting::rope_scale_linear : Setting::rope_scaling_factor;
    TESSERA_TRY(const double said, from.settings.number(setting));
    TESSERA_TRY(rope.linear_factor, from.positive(setting, said));
    return {};
  }
  if (type == "yarn") return read_yarn(from, spec, rope);
  if (type == "longrope") {
    if (from.has_tensor(Role::rope_factors_long)) return {};
    return from.corrupt(Setting::rope_scaling, "LongRoPE without a tensor {}", from.called(Role::rope_factors_long));
  }
  if (!type.empty() && type != "none") {
    return from.unsupported(Setting::rope_scaling, "rope scaling \"{}\" is not implemented; linear, yarn, longrope and {} (Llama 3.1) are",
                            printable(type), from.called(Role::rope_freqs));
  }
  TESSERA_TRY(const double factor, from.settings.number_or(Setting::rope_scaling_factor, 1.0));
  if (type.empty() && factor != 1.0 && factor != 0.0) {
    return from.unsupported(Setting::rope_scaling_factor, "a factor of {} without {}: which scaling is meant?", factor,
                            from.settings.called(Setting::rope_scaling));
  }
  return {};
}

// Chooses LongRoPE's factors: the short factors if the engine's context is at most the context of the first training, else the long
// factors. The engine's context decides even for short sequences, because a row must not change when more rows follow it.
Status choose_factors(const SettingReader& from, const SpecOverrides& overrides, const ModelSpec& spec, RopeSpec& rope) {
  const bool has_short = from.has_tensor(Role::rope_factors_short);
  const bool has_long = from.has_tensor(Role::rope_factors_long);
  if (has_short != has_long) {
    return error_at(ErrorCode::corrupt_file, from.called(has_short ? Role::rope_factors_long : Role::rope_factors_short),
                    "the tensor is missing; LongRoPE needs short and long factors");
  }
  if (!has_long) return {};
  TESSERA_TRY(const std::uint64_t original, from.original_context(spec.context));
  const std::uint64_t context = overrides.context != 0 ? overrides.context : spec.context;
  rope.factors = context > original ? LongRope::long_context : LongRope::short_context;
  return {};
}

}  // namespace

Status read_rope(const SettingReader& from, const SpecOverrides& overrides, ModelSpec& spec) {
  const Architecture& table = from.table;
  if (table.positions != Positions::rope || std::ranges::none_of(spec.layers, attends)) return {};
  TESSERA_TRY(const std::uint32_t dim, rope_dim(from, kRope, Setting::rope_dim, spec));
  RopeSpec rope{.pairs = table.rope_pairs, .dim = dim};
  TESSERA_TRY(rope.theta, from.positive(Setting::rope_theta, 10000.0));
  TESSERA_TRY_STATUS(read_scaling(from, spec, rope));
  TESSERA_TRY_STATUS(choose_factors(from, overrides, spec, rope));
  spec.ropes.push_back(rope);  // its index is kRope
  if (table.windows.rope != WindowedRope::unscaled) return {};
  const bool has_own_dim = from.settings.has(Setting::windowed_rope_dim);
  TESSERA_TRY(const std::uint32_t windowed_dim,
              rope_dim(from, kWindowedRope, has_own_dim ? Setting::windowed_rope_dim : Setting::rope_dim, spec));
  RopeSpec windowed{.pairs = table.rope_pairs, .dim = windowed_dim};
  TESSERA_TRY(windowed.theta, from.positive(Setting::windowed_rope_theta, table.windows.theta != 0.0 ? table.windows.theta : rope.theta));
  spec.ropes.push_back(windowed);  // its index is kWindowedRope
  return {};
}

}  // namespace tessera::detail
