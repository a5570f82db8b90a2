// Reads the options of NVIDIA's ModelOpt. How weights are packed, and which modules are not quantised (exclude_modules), follows from the
// tensors and is not read. Only the rounding of the inputs is read from the options. It follows from the algorithm; if that is
// "MIXED_PRECISION", from the algorithm that quantized_layers has for each layer.
#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "hub/config.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::array<std::string_view, 6> kAlgorithms = {"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "NVFP4", "W4A16_NVFP4", "MIXED_PRECISION", "FP8_PB_WO"};

Status check_algorithm(const Json& object, std::string_view key) {
  const std::string_view algorithm = text_in(&object, "quant_algo");
  if (std::ranges::find(kAlgorithms, algorithm) == kAlgorithms.end()) return not_read(key, algorithm);
  return {};
}

// Adds the rounding of inputs that belongs to an algorithm, for `layers`.
void add_scheme(std::string_view algorithm, const LayerPatterns& layers, QuantisationOptions& options) {
  if (algorithm == "FP8") options.activations.push_back({.of = WeightKind::fp8, .to = RoundedInputs::fp8, .is_static = true, .layers = layers});
  if (algorithm == "FP8_PER_CHANNEL_PER_TOKEN") options.activations.push_back({.of = WeightKind::fp8, .to = RoundedInputs::fp8, .layers = layers});
  if (algorithm == "NVFP4") {
    options.activations.push_back({.of = WeightKind::fp4, .refused = "quant_algo rounds activations of NVFP4 weights to 4 bits", .layers = layers});
  }
}

}  // namespace

Status read_modelopt_options(const Json& config, QuantisationOptions& options) {
  TESSERA_TRY_STATUS(check_algorithm(config, "quant_algo"));
  const std::string_view algorithm = text_in(&config, "quant_algo");
  const Json* layers = find_in(&config, "quantized_layers");
  if (layers != nullptr && layers->members() != nullptr) {
    for (const auto& [name, own] : *layers->members()) {
      TESSERA_TRY_STATUS(check_algorithm(own, "quantized_layers"));
      add_scheme(text_in(&own, "quant_algo"), LayerPatterns::of_layer(name), options);
    }
  } else if (algorithm == "MIXED_PRECISION") {  // config.json does not list layers: the usual rounding for each kind of weights
    add_scheme("FP8", {}, options);
    add_scheme("NVFP4", {}, options);
  }
  add_scheme(algorithm, {}, options);
  return {};
}

}  // namespace tessera::detail::hub
