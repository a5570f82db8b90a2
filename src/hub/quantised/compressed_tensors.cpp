// Reads the options of compressed-tensors (llm-compressor). They are in config_groups, which has one entry for a set of layers, chosen by
// patterns of the layers' names. Most options also follow from the tensors of a layer, which decide if the two differ.
#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/config.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::array<std::string_view, 8> kFormats = {"pack-quantized",   "int-quantized",        "float-quantized",      "naive-quantized",
                                                      "mixed-precision", "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized"};

Status check_format(const Json& object) {
  const std::string_view format = text_in(&object, "format");
  if (!format.empty() && std::ranges::find(kFormats, format) == kFormats.end()) return not_read("format", format);
  return {};
}

}  // namespace

Status read_compressed_options(const Json& config, QuantisationOptions& options) {
  if (text_in(&config, "format").empty()) return not_read("format", "");
  TESSERA_TRY_STATUS(check_format(config));
  // Rotations between layers and sparse weights are not implemented.
  if (const Json* rotations = find_in(find_in(&config, "transform_config"), "config_groups"); rotations != nullptr && rotations->members() != nullptr && !rotations->members()->empty()) {
    return not_read("transform_config", "rotations");
  }
  const std::string_view sparse = text_in(find_in(&config, "sparsity_config"), "format");
  if (!sparse.empty() && sparse != "dense") return not_read("sparsity_config.format", sparse);
  options.group = 0;
  const Json* groups = find_in(&config, "config_groups");
  if (groups == nullptr || groups->members() == nullptr) return {};
  bool is_first = true, all_4 = true;
  for (const auto& [name, group] : *groups->members()) {
    TESSERA_TRY_STATUS(check_format(group));
    const Json* weights = find_in(&group, "weights");
    if (weights == nullptr) continue;
    ActivationScheme scheme = read_activations(group);
    // Unknown targets are an error only if inputs are rounded, because a layer's tensors say how its weights are packed.
    auto layers = LayerPatterns::read(find_in(&group, "targets"));
    if (layers) scheme.layers = *std::move(layers);
    else if (layers.error().code() == ErrorCode::out_of_memory) return layers.error();
    else if (scheme.refused.empty()) scheme.refused = fmt::format("config_groups: targets has {}", layers.error().message());
    options.activations.push_back(std::move(scheme));
    const std::int64_t bits = integer_in(weights, "num_bits", 4);
    all_4 = all_4 && bits == 4;
    // The numbers of the first group are used where they fit the tensors' shapes. Otherwise the shapes decide.
    if (is_first) {
      options.group = integer_in(weights, "group_size", 0);
      options.bits = bits > 0 && bits <= 16 ? static_cast<unsigned>(bits) : 4;
      read_block(weights, "block_structure", options);
    }
    is_first = false;
  }
  if (all_4 && !is_first) options.unpacked_bits = 4;
  return {};
}

}  // namespace tessera::detail::hub
