#include "mix.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::quantize {
namespace {

struct Named {
  std::string_view name;
  Target target;
  std::uint32_t file_type;
};

constexpr std::array kTargets = {
    Named{"F32", {DType::f32}, 0},
    Named{"F16", {DType::f16}, 1},
    Named{"BF16", {DType::bf16}, 32},
    Named{"Q8_0", {DType::q8_0}, 7},
    Named{"Q6_K", {DType::q6_k}, 18},
    Named{"Q5_K_M", {DType::q5_k, Mix::medium}, 17},
    Named{"Q5_K_S", {DType::q5_k, Mix::small}, 16},
    Named{"Q5_K", {DType::q5_k}, 16},
    Named{"Q5_1", {DType::q5_1}, 9},
    Named{"Q5_0", {DType::q5_0}, 8},
    Named{"Q4_K_M", {DType::q4_k, Mix::medium}, 15},
    Named{"Q4_K_S", {DType::q4_k, Mix::small}, 14},
    Named{"Q4_K", {DType::q4_k}, 14},
    Named{"Q4_1", {DType::q4_1}, 3},
    Named{"Q4_0", {DType::q4_0}, 2},
};

// Formats that other programs write.
constexpr std::array<std::string_view, 10> kElsewhere = {"Q2_K", "Q2_K_S", "Q3_K",   "Q3_K_S", "Q3_K_M",
                                                        "Q3_K_L", "IQ4_NL", "IQ4_XS", "MXFP4",  "IQ3_M"};

// "blk.12.attn_v.weight" is of layer 12.
std::optional<std::uint64_t> layer_of(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  std::uint64_t layer = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || stop == name.data() + name.size() || *stop != '.') return std::nullopt;
  return layer;
}

// The first and the last eighth of `count`, and every third between.
bool more_bits(std::uint64_t i, std::uint64_t count) {
  const std::uint64_t eighth = count / 8;
  return i < eighth || i >= 7 * count / 8 || (i - eighth) % 3 == 2;
}

}  // namespace

std::string target_names() {
  std::vector<std::string_view> names;
  for (const Named& named : kTargets) names.push_back(named.name);
  return fmt::format("{}", fmt::join(names, " "));
}

Result<Target> parse_target(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const Named& named : kTargets) {
    if (upper == named.name) return named.target;
  }
  if (std::find(kElsewhere.begin(), kElsewhere.end(), upper) != kElsewhere.end()) {
    return Error(ErrorCode::unsupported,
                 fmt::format("{} is not available yet, as tessera has no such weights; the smallest are Q4_K_S and Q4_0",
                             upper));
  }
  return Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a format; there are {}", name, target_names()));
}

std::uint32_t file_type(const Target& target) noexcept {
  for (const Named& named : kTargets) {
    if (named.target.format == target.format && named.target.mix == target.mix) return named.file_type;
  }
  return 1024;  // "guessed"
}

Rules::Rules(const ModelFile& model, const Target& target) : target_(target) {
  const auto architecture = model.metadata().string("general.architecture");
  const std::string arch(architecture ? *architecture : std::string_view{});
  falcon_ = arch == "falcon";
  const auto number = [&](const char* key) -> std::uint64_t {
    const auto value = model.metadata().unsigned_integer(arch + key);
    return value ? *value : 0;
  };
  layers_ = number(".block_count");
  wide_groups_ = layers_ == 80 && number(".attention.head_count") != number(".attention.head_count_kv");
  for (const GgufTensor& tensor : model.tensors()) {
    const std::string_view name = tensor.name;
    const auto layer = layer_of(name);
    const bool values = name.ends_with(".attn_v.weight") || name.ends_with(".attn_qkv.weight");
    if (layer && values) value_layers_.push_back(*layer);
  }
  std::sort(value_layers_.begin(), value_layers_.end());
}

DType Rules::output() const noexcept {
  switch (target_.format) {
    case DType::f32: case DType::f16: case DType::bf16: case DType::q8_0: return target_.format;
    default: return falcon_ ? DType::q8_0 : DType::q6_k;
  }
}

DType Rules::format_of(std::string_view name) const {
  if (target_.mix == Mix::none) return target_.format;
  if (name.ends_with(".attn_v.weight")) return attention_values(name);
  if (name.find("ffn_down") != name.npos) return ffn_down(name);
  if (name.ends_with(".attn_qkv.weight") && target_.mix == Mix::medium) {
    return target_.format == DType::q4_k ? DType::q5_k : DType::q6_k;
  }
  return target_.format;
}

DType Rules::attention_values(std::string_view name) const {
  const auto layer = layer_of(name);
  if (!layer) return target_.format;
  const auto at = std::lower_bound(value_layers_.begin(), value_layers_.end(), *layer);
  const auto i = static_cast<std::uint64_t>(at - value_layers_.begin());
  if (target_.mix == Mix::medium && more_bits(i, value_layers_.size())) return DType::q6_k;
  const bool first = target_.mix == Mix::small && i < 4;
  return target_.format == DType::q4_k && (first || wide_groups_) ? DType::q5_k : target_.format;
}

DType Rules::ffn_down(std::string_view name) const {
  const auto layer = layer_of(name);
  if (!layer) return target_.format;
  const bool four = target_.format == DType::q4_k;
  if (target_.mix == Mix::small) return four && !falcon_ && *layer < layers_ / 8 ? DType::q5_k : target_.format;
  if (falcon_ && four) {
    return *layer < layers_ / 16 ? DType::q6_k : more_bits(*layer, layers_) ? DType::q5_k : DType::q4_k;
  }
  return more_bits(*layer, layers_) ? DType::q6_k : target_.format;
}

}  // namespace tessera::quantize
