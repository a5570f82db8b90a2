#include "model/spec/rope_spec.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <tessera/extend/kv/kv_layout.hpp>

#include "core/error.hpp"
#include "core/math.hpp"
#include "core/printable.hpp"
#include "model/spec/spec_keys.hpp"

namespace tessera::detail {

namespace {

bool attends(const LayerSpec& layer) noexcept { return layer.mixer == Mixer::attention; }

class RopeReader : private SpecKeys {
 public:
  RopeReader(const ModelFile& file, const Architecture& table, ModelSpec& spec) : SpecKeys(file, table), spec_(spec) {}

  Status read(const SpecOverrides& overrides) {
    if (std::ranges::none_of(spec_.layers, attends)) return {};
    TESSERA_TRY(const std::uint32_t dim, rope_dim(kRope, "rope.dimension_count"));
    RopeSpec rope{.pairs = table_.rope_pairs, .dim = dim};
    TESSERA_TRY(rope.theta, positive("rope.freq_base", 10000.0));
    TESSERA_TRY_STATUS(read_scaling(rope));
    TESSERA_TRY_STATUS(choose_factors(rope, overrides));
    spec_.ropes.push_back(rope);  // kRope
    if (table_.windows.rope != WindowedRope::unscaled) return {};
    constexpr std::string_view kOwnDim = "rope.dimension_count_swa";
    const bool has_own_dim = meta_.find(key(kOwnDim)) != nullptr;
    TESSERA_TRY(const std::uint32_t windowed_dim, rope_dim(kWindowedRope, has_own_dim ? kOwnDim : "rope.dimension_count"));
    RopeSpec windowed{.pairs = table_.rope_pairs, .dim = windowed_dim};
    TESSERA_TRY(windowed.theta, positive("rope.freq_base_swa", table_.windows.theta != 0.0 ? table_.windows.theta : rope.theta));
    spec_.ropes.push_back(windowed);  // kWindowedRope
    return {};
  }

 private:
  // Elements that rotate of the heads of the layers that have this rope. What a file says of a rope that no layer has is not read:
  // Nemotron-H's files have a count for heads that do not rotate.
  Result<std::uint32_t> rope_dim(std::uint32_t rope, std::string_view name) const {
    std::uint32_t key_dim = 0;
    for (const LayerSpec& layer : spec_.layers) {
      if (layer.rope != rope) continue;
      if (key_dim == 0) key_dim = layer.key_dim;
      if (layer.key_dim == key_dim) continue;
      return error_at(ErrorCode::unsupported, place(key("attention.head_count")),
                      "heads of {} and of {} elements: layers of one rope need the same", key_dim, layer.key_dim);
    }
    if (key_dim == 0) return std::max(std::ranges::find_if(spec_.layers, attends)->key_dim / 2 * 2, 2u);
    TESSERA_TRY(const std::uint64_t dim, meta_.unsigned_integer_or(key(name), key_dim));
    if (dim == 0 || dim % 2 != 0 || dim > key_dim) {
      return error_at(ErrorCode::corrupt_file, place(key(name)), "the value is {}; expected an even number up to the head's {}",
                      dim, key_dim);
    }
    return static_cast<std::uint32_t>(dim);
  }

  Status read_scaling(RopeSpec& rope) const {
    TESSERA_TRY(const double magnitude, positive("rope.scaling.attn_factor", 1.0));
    rope.magnitude = static_cast<float>(magnitude);
    TESSERA_TRY(const auto type, meta_.string_or(key("rope.scaling.type"), ""));
    const bool old_style = meta_.find(key("rope.scale_linear")) != nullptr;  // what GGUF v1-era converters wrote
    if (type == "linear" || (type.empty() && old_style)) {
      const std::string_view name = old_style && type.empty() ? "rope.scale_linear" : "rope.scaling.factor";
      TESSERA_TRY(const double said, meta_.number(key(name)));
      TESSERA_TRY(rope.linear_factor, positive(name, said));
      return {};
    }
    if (type == "yarn") return read_yarn(rope);
    if (type == "longrope") {
      if (file_.find_tensor(row_of(Role::rope_factors_long).name) != nullptr) return {};
      return error_at(ErrorCode::corrupt_file, place(key("rope.scaling.type")), "LongRoPE without a tensor {}",
                      row_of(Role::rope_factors_long).name);
    }
    if (!type.empty() && type != "none") {
      return error_at(ErrorCode::unsupported, place(key("rope.scaling.type")),
                      "rope scaling \"{}\" is not implemented; linear, yarn, longrope and rope_freqs.weight (Llama 3.1) are",
                      printable(type));
    }
    TESSERA_TRY(const double factor, meta_.number_or(key("rope.scaling.factor"), 1.0));
    if (type.empty() && factor != 1.0 && factor != 0.0) {
      return error_at(ErrorCode::unsupported, place(key("rope.scaling.factor")),
                      "a factor of {} without {}: which scaling is meant?", factor, key("rope.scaling.type"));
    }
    return {};
  }

  // YaRN (Peng et al. 2023): pairs that turn more than beta_fast times in the context that the model was first trained
  // with keep their frequency, those that turn less than beta_slow times are divided by the factor.
  Status read_yarn(RopeSpec& rope) const {
    TESSERA_TRY(rope.linear_factor, positive("rope.scaling.factor", 1.0));
    TESSERA_TRY(const std::uint64_t original, original_context(spec_.context));
    TESSERA_TRY(const double fast, positive("rope.scaling.yarn_beta_fast", 32.0));
    TESSERA_TRY(const double slow, positive("rope.scaling.yarn_beta_slow", 1.0));
    const std::string mixed = key("rope.scaling.yarn_ext_factor");
    TESSERA_TRY(const double share, meta_.number_or(mixed, 1.0));
    if (share != 1.0) return error_at(ErrorCode::unsupported, place(mixed), "the value is {}; 1 alone is implemented", share);
    if (rope.theta == 1.0) return error_at(ErrorCode::corrupt_file, place(key("rope.freq_base")), "YaRN with a base of 1");
    const auto pair_that_turns = [&](double times) {  // in the original context
      constexpr double kTurn = 6.283185307179586;
      return rope.dim * math::log(static_cast<double>(original) / (times * kTurn)) / (2.0 * math::log(rope.theta));
    };
    double first = pair_that_turns(fast), last = pair_that_turns(slow);
    if (table_.yarn_ramp == YarnRamp::whole_pairs) first = std::floor(first), last = std::ceil(last);
    rope.first_slowed = std::max(0.0, first);
    rope.all_slowed = std::min(rope.dim - 1.0, last);
    TESSERA_TRY(const double magnitude, yarn_magnitude(rope.linear_factor));
    rope.magnitude *= static_cast<float>(magnitude);
    return {};
  }

  // What rotates is multiplied by the magnitude that the file names, as transformers does. llama.cpp computes it from the factor all the
  // same. A file without one: from the factor, and from the multiplier of all elements, where there is one.
  Result<double> yarn_magnitude(double factor) const {
    if (meta_.find(key(kYarnMagnitudeKey)) != nullptr) return positive(kYarnMagnitudeKey, 1.0);
    const auto growth = [factor](double by) { return factor > 1.0 ? 0.1 * by * math::log(factor) + 1.0 : 1.0; };
    TESSERA_TRY(const double by, positive_or_none("rope.scaling.yarn_log_multiplier", 0.0));
    return growth(1.0) / (by != 0.0 ? growth(by) : 1.0);
  }

  // LongRoPE has factors for sequences within the context that the model was first trained with, and others for longer
  // ones. A row must not change with what follows it, so an engine's context decides for all its sequences.
  Status choose_factors(RopeSpec& rope, const SpecOverrides& overrides) const {
    const bool has_short = file_.find_tensor(row_of(Role::rope_factors_short).name) != nullptr;
    const bool has_long = file_.find_tensor(row_of(Role::rope_factors_long).name) != nullptr;
    if (has_short != has_long) {
      return error_at(ErrorCode::corrupt_file, std::string(row_of(has_short ? Role::rope_factors_long : Role::rope_factors_short).name),
                      "the tensor is missing; LongRoPE needs short and long factors");
    }
    if (!has_long) return {};
    TESSERA_TRY(const std::uint64_t original, original_context(spec_.context));
    const std::uint64_t context = overrides.context != 0 ? overrides.context : spec_.context;
    rope.factors = context > original ? LongRope::long_context : LongRope::short_context;
    return {};
  }

  ModelSpec& spec_;
};

}  // namespace

Status read_rope(const ModelFile& file, const Architecture& table, const SpecOverrides& overrides, ModelSpec& spec) {
  return RopeReader(file, table, spec).read(overrides);
}

}  // namespace tessera::detail
