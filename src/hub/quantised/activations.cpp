// Reads how inputs of matrices are rounded: from options in config.json, and from tensors with scales beside the weights.
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/config.hpp"
#include "hub/quantised/methods.hpp"
#include "hub/quantised/quantisation.hpp"

namespace tessera::detail::hub {

namespace {

WeightKind kind_of(SafetensorsType type) noexcept {
  switch (type) {
    case SafetensorsType::i8:
    case SafetensorsType::i32: return WeightKind::integers;
    case SafetensorsType::f8_e4m3:
    case SafetensorsType::f8_e5m2: return WeightKind::fp8;
    case SafetensorsType::u8: return WeightKind::fp4;
    default: return WeightKind::other;  // numbers of 16 or 32 bits, which are not quantised
  }
}

WeightKind kind_of(const Json* weights) noexcept {
  if (text_in(weights, "type") != "float") return WeightKind::integers;
  return integer_in(weights, "num_bits", 8) == 4 ? WeightKind::fp4 : WeightKind::fp8;
}

// Reads a tensor that has a single number.
Result<float> number_of(const SafetensorsFolder& folder, const Found& found) {
  TESSERA_TRY(const Bytes bytes, bytes_of(folder, found));
  if (found.tensor->type == SafetensorsType::i8 && bytes.size() == 1) return static_cast<float>(static_cast<std::int8_t>(bytes[0]));
  const auto type = scale_type_of(found);
  if (!type || bytes.size() != scale_bytes(*type)) return wrong_tensor(ErrorCode::corrupt_file, folder, found, "it must be one number, for the whole matrix");
  return load_scale(*type, bytes.data(), 0);
}

}  // namespace

ActivationScheme read_activations(const Json& group) {
  ActivationScheme scheme{.of = kind_of(find_in(&group, "weights"))};
  const Json* how = find_in(&group, "input_activations");
  if (how == nullptr || how->members() == nullptr) return scheme;
  const auto refuse = [&](std::string_view key, std::string_view value) {
    scheme.refused = fmt::format("config_groups: input_activations.{} is {}", key, printable(value));
    return scheme;
  };
  const std::int64_t bits = integer_in(how, "num_bits", 8);
  const std::string_view type = text_in(how, "type"), strategy = text_in(how, "strategy");
  const Json* dynamic = find_in(how, "dynamic");
  if (bits >= 16) return scheme;
  if (bits != 8) return refuse("num_bits", std::to_string(bits));
  if (dynamic != nullptr && dynamic->string() != nullptr) return refuse("dynamic", *dynamic->string());
  if (!text_in(how, "scale_dtype").empty() && text_in(how, "scale_dtype").find("uint8") != std::string_view::npos) return refuse("scale_dtype", text_in(how, "scale_dtype"));
  const bool is_symmetric = flag_in(how, "symmetric", true);
  scheme.is_static = !flag_in(how, "dynamic", false);
  scheme.to = type == "float" ? RoundedInputs::fp8 : is_symmetric ? RoundedInputs::int8 : RoundedInputs::int8_with_zero;
  if (type == "float" && !is_symmetric) return refuse("symmetric", "false");
  if (scheme.is_static) return strategy.empty() || strategy == "tensor" ? scheme : refuse("strategy", strategy);
  if (strategy == "group") {
    const std::int64_t size = integer_in(how, "group_size", 0);
    if (size < 1 || size > UINT32_MAX) return refuse("group_size", std::to_string(size));
    scheme.group = static_cast<std::uint32_t>(size);
    return scheme;
  }
  return strategy == "token" ? scheme : refuse("strategy", strategy.empty() ? "missing" : strategy);
}

Result<InputRounding> Quantisation::input_rounding(const SafetensorsFolder& folder, const SafetensorsTensor& weight) const {
  InputRounding rounding;
  const std::string_view module = std::string_view(weight.name).substr(0, weight.name.rfind('.'));
  const ActivationScheme* scheme = nullptr;
  Naming best = Naming::not_at_all;
  for (const ActivationScheme& own : options_ != nullptr ? std::span(options_->activations) : std::span<const ActivationScheme>()) {
    if (own.of != kind_of(weight.type)) continue;
    TESSERA_TRY(const Naming naming, own.layers.naming(module));
    if (naming == Naming::not_at_all || naming < best) continue;
    // If several entries name the layer itself, the first entry counts, as in compressed-tensors. Entries that name its class must agree.
    if (naming == best && naming == Naming::by_name) continue;
    if (naming == best && !scheme->rounds_as(own)) {
      return error_at(ErrorCode::unsupported, "config.json: quantization_config.config_groups",
                      "layers of one class, with weights of one kind, round their inputs in several ways, which tessera does not compute: choose activations = automatic");
    }
    scheme = &own;
    best = naming;
  }
  if (scheme == nullptr) return rounding;
  if (!scheme->refused.empty()) {
    return error_at(ErrorCode::unsupported, "config.json: quantization_config", "{}, which tessera does not compute: choose activations = automatic", scheme->refused);
  }
  rounding.to = scheme->to;
  rounding.group = scheme->group;
  if (!scheme->is_static || scheme->to == RoundedInputs::none) return rounding;
  const std::string_view stem = module;
  Found scale = look_up(folder, stem, ".input_scale");
  if (!scale) scale = look_up(folder, stem, ".activation_scale");  // transformers' and Mistral's name
  const Found zero = look_up(folder, stem, ".input_zero_point");
  if (!scale) {
    return error_at(ErrorCode::corrupt_file, folder.file_name(weight.part), "tensor {}.input_scale (or activation_scale) is missing: config.json says that inputs are rounded with it",
                    printable(stem));
  }
  TESSERA_TRY(const float factor, number_of(folder, scale));
  if (!(factor > 0.0f) || !std::isfinite(factor)) return wrong_tensor(ErrorCode::corrupt_file, folder, scale, fmt::format("it is {}; expected a positive number", factor));
  rounding.scales = {factor};
  if (scheme->to != RoundedInputs::int8_with_zero) return rounding;
  if (!zero) return wrong_tensor(ErrorCode::corrupt_file, folder, scale, "input_zero_point belongs to it");
  TESSERA_TRY(const float middle, number_of(folder, zero));
  if (!(std::fabs(middle) <= 128.0f) || std::trunc(middle) != middle) return wrong_tensor(ErrorCode::corrupt_file, folder, zero, fmt::format("it is {}; expected -128 to 127", middle));
  rounding.zeros = {middle};
  return rounding;
}

}  // namespace tessera::detail::hub
