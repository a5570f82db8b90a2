#include "format_mix.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/extend/formats/rows.hpp>

namespace tessera::tool {
namespace {

struct Named {
  std::string_view name;
  Target target;
  std::uint32_t file_type;
};

// The names of mixes. Every other format has only its own name.
constexpr std::array kMixes = {
    Named{"Q5_K_M", {DType::q5_k, Mix::medium}, 17},
    Named{"Q5_K_S", {DType::q5_k, Mix::small}, 16},
    Named{"Q4_K_M", {DType::q4_k, Mix::medium}, 15},
    Named{"Q4_K_S", {DType::q4_k, Mix::small}, 14},
    Named{"IQ4_NL", {DType::iq4_nl, Mix::medium}, 25},
    Named{"IQ4_XS", {DType::iq4_xs, Mix::medium}, 30},
    Named{"Q3_K_L", {DType::q3_k, Mix::large}, 13},
    Named{"Q3_K_M", {DType::q3_k, Mix::medium}, 12},
    Named{"Q3_K_S", {DType::q3_k, Mix::none}, 11},
    Named{"Q2_K", {DType::q2_k, Mix::medium}, 10},
};

// Names of formats that tessera cannot write, but other programs can.
constexpr std::array<std::string_view, 13> kElsewhere = {"Q2_K_S", "IQ3_M",   "IQ3_S",  "IQ3_XS",  "IQ3_XXS", "IQ2_M", "IQ2_S",
                                                         "IQ2_XS", "IQ2_XXS", "IQ1_M",  "IQ1_S",   "TQ1_0",   "TQ2_0"};

// Returns the layer of a tensor: 12 for "blk.12.attn_v.weight".
std::optional<std::uint64_t> layer_of(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  std::uint64_t layer = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || stop == name.data() + name.size() || *stop != '.') return std::nullopt;
  return layer;
}

// Returns the bits that the type uses for a value.
double bits_of(DType type) noexcept {
  const auto block = formats::block_of(type);
  return block ? 8.0 * static_cast<double>(block->bytes) / static_cast<double>(block->values) : 0.0;
}

// Returns whether layer `i` of `count` gets more bits: true in the first and in the last eighth, and for every third layer in between.
bool more_bits(std::uint64_t i, std::uint64_t count) {
  const std::uint64_t eighth = count / 8;
  return i < eighth || i >= 7 * count / 8 || (i - eighth) % 3 == 2;
}

}  // namespace

std::string target_names() {
  std::vector<std::string_view> names;
  for (const DType type : formats::all()) {
    if (!formats::writing_of(type)) continue;
    for (const Named& mix : kMixes) {
      if (mix.target.format == type) names.push_back(mix.name);
    }
    if (std::find(names.begin(), names.end(), to_string(type)) == names.end()) names.push_back(to_string(type));
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string formats_with_bits() {
  std::string text;
  for (const DType type : formats::all()) {
    if (!formats::writing_of(type)) continue;
    text += fmt::format("{}{} {:.3g}", text.empty() ? "" : "   ", to_string(type), bits_of(type));
  }
  return text;
}

Result<Target> parse_target(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const Named& mix : kMixes) {
    if (upper == mix.name) return mix.target;
  }
  for (const DType type : formats::all()) {
    if (upper == to_string(type) && formats::writing_of(type)) return Target{type};
  }
  if (std::find(kElsewhere.begin(), kElsewhere.end(), upper) != kElsewhere.end()) {
    return Error(ErrorCode::unsupported, fmt::format("{} is not available yet; there are {}", upper, target_names()));
  }
  return Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a format; there are {}", name, target_names()));
}

std::string name_of(const Target& target) {
  for (const Named& mix : kMixes) {
    if (mix.target.format == target.format && mix.target.mix == target.mix) return std::string(mix.name);
  }
  return std::string(to_string(target.format));
}

std::uint32_t file_type(const Target& target) noexcept {
  for (const Named& mix : kMixes) {
    if (mix.target.format == target.format && mix.target.mix == target.mix) return mix.file_type;
  }
  const auto writing = formats::writing_of(target.format);
  return writing ? writing->file_type : 1024;  // "guessed"
}

std::string format_of(const ModelSource& model) {
  const auto said = model.settings().find_key("general.file_type");
  const std::int64_t* number = said ? std::get_if<std::int64_t>(&*said) : nullptr;
  for (const Named& mix : kMixes) {
    if (number != nullptr && *number == mix.file_type && mix.target.mix == Mix::medium) return std::string(mix.name);
  }
  std::map<DType, std::uint64_t> bytes;
  for (const TensorInfo& tensor : model.tensors()) {
    if (tensor.n_dims > 1) bytes[tensor.dtype] += tensor.bytes;
  }
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "?" : std::string(to_string(most->first));
}

DType fitting(DType wanted, std::uint64_t row) noexcept {
  while (row % formats::block_of(wanted)->values != 0) {
    const auto writing = formats::writing_of(wanted);
    wanted = writing ? writing->fallback : DType::f16;  // formats of plain numbers fit any row
  }
  return wanted;
}

MixedModel mixed_model(const ModelSource& model) {
  MixedModel mixed;
  const Settings& settings = model.settings();
  mixed.architecture = settings.string_or(Setting::architecture, "").value_or(std::string_view());
  const auto number = [&](Setting setting) -> std::uint64_t {  // a list (one number for each layer) counts as 0
    const auto value = settings.unsigned_integer(setting);
    return value ? *value : 0;
  };
  mixed.layers = number(Setting::n_layers);
  mixed.heads = number(Setting::n_heads);
  mixed.kv_heads = number(Setting::n_kv_heads);
  for (const GgufTensor& tensor : model.tensors()) {
    const std::string_view name = tensor.name;
    const auto layer = layer_of(name);
    const bool values = name.ends_with(".attn_v.weight") || name.ends_with(".attn_qkv.weight");
    if (layer && values) mixed.value_layers.push_back(*layer);
  }
  std::sort(mixed.value_layers.begin(), mixed.value_layers.end());
  return mixed;
}

Rules::Rules(MixedModel model, const Target& target)
    : target_(target),
      model_(std::move(model)),
      falcon_(model_.architecture == "falcon"),
      four_share_(model_.kv_heads != 0 && model_.heads / model_.kv_heads >= 4),
      wide_groups_(model_.layers == 80 && model_.heads != model_.kv_heads) {}

DType Rules::output() const noexcept {
  const DType least = falcon_ ? DType::q8_0 : DType::q6_k;
  return bits_of(target_.format) < bits_of(least) ? least : target_.format;
}

DType Rules::format_of(std::string_view name) const {
  if (target_.mix == Mix::none) return target_.format;
  if (name.ends_with(".attn_v.weight")) return attention_values(name);
  if (name.find("ffn_down") != name.npos) return ffn_down(name);
  if (name.ends_with(".attn_output.weight")) return attention_output();
  if (name.ends_with(".attn_qkv.weight") && target_.mix == Mix::medium) {
    return target_.format == DType::q4_k   ? DType::q5_k
           : target_.format == DType::q5_k ? DType::q6_k
           : target_.format == DType::q3_k ? DType::q4_k
                                           : target_.format;
  }
  if (name.ends_with(".attn_qkv.weight") && target_.mix == Mix::large) return DType::q4_k;
  return target_.format;
}

DType Rules::attention_output() const noexcept {
  switch (target_.format) {
    case DType::q2_k: return falcon_ ? DType::q2_k : DType::q3_k;
    case DType::q3_k:
      if (target_.mix == Mix::large) return falcon_ ? DType::q4_k : DType::q5_k;
      return falcon_ ? DType::q3_k : DType::q4_k;
    default: return target_.format;
  }
}

DType Rules::attention_values(std::string_view name) const {
  const auto layer = layer_of(name);
  if (!layer) return target_.format;
  const auto at = std::lower_bound(model_.value_layers.begin(), model_.value_layers.end(), *layer);
  const auto i = static_cast<std::uint64_t>(at - model_.value_layers.begin());
  switch (target_.format) {
    case DType::q2_k: return four_share_ ? (wide_groups_ ? DType::q5_k : DType::q4_k) : DType::q3_k;
    case DType::q3_k: return target_.mix == Mix::large || i < 2 || wide_groups_ ? DType::q5_k : DType::q4_k;
    case DType::iq4_nl:
    case DType::iq4_xs: return four_share_ ? DType::q5_k : target_.format;
    default: break;
  }
  if (target_.mix == Mix::medium && more_bits(i, model_.value_layers.size())) return DType::q6_k;
  const bool first = target_.mix == Mix::small && i < 4;
  return target_.format == DType::q4_k && (first || wide_groups_) ? DType::q5_k : target_.format;
}

DType Rules::ffn_down(std::string_view name) const {
  const auto layer = layer_of(name);
  if (!layer) return target_.format;
  switch (target_.format) {
    case DType::q2_k: return DType::q3_k;
    case DType::q3_k:
      if (target_.mix == Mix::large) return falcon_ ? DType::q4_k : DType::q5_k;
      if (*layer < model_.layers / 16) return DType::q5_k;
      return !falcon_ || more_bits(*layer, model_.layers) ? DType::q4_k : DType::q3_k;
    case DType::iq4_nl:
    case DType::iq4_xs: return *layer < model_.layers / 8 ? DType::q5_k : target_.format;
    default: break;
  }
  const bool four = target_.format == DType::q4_k;
  if (target_.mix == Mix::small) return four && !falcon_ && *layer < model_.layers / 8 ? DType::q5_k : target_.format;
  if (falcon_ && four) {
    return *layer < model_.layers / 16 ? DType::q6_k : more_bits(*layer, model_.layers) ? DType::q5_k : DType::q4_k;
  }
  return more_bits(*layer, model_.layers) ? DType::q6_k : target_.format;
}

}  // namespace tessera::tool
