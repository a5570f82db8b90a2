// The methods by which hubs quantise models: GPTQ, AWQ and others. Each method has a function that reads its options from
// quantization_config, and functions that read its matrices. The names of a layer's tensors say how the layer is packed, and their shapes
// say its bits and groups. Options are used only for what the tensors do not say. So no rules about names of layers are needed for
// folders whose layers differ (config_groups, "dynamic", layers that are not quantised).
//
// To add a method: write a file with its functions, declare them in this header, and add a line to the table of quantisation.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/core/input_rounding.hpp>
#include <tessera/json/json.hpp>

#include "files/quantised/gptq.hpp"
#include "hub/quantised/decoded_matrix.hpp"
#include "hub/quantised/layer_patterns.hpp"

namespace tessera::detail::hub {

// The kinds of weights, by the type of their tensor. A folder may have several kinds.
enum class WeightKind : std::uint8_t { integers, fp8, fp4, other };

// The rounding of inputs, for the layers that match `layers` and have the kind of weights `of`.
struct ActivationScheme {
  WeightKind of = WeightKind::other;
  RoundedInputs to = RoundedInputs::none;
  bool is_static = false;   // true: the scale is in the tensor input_scale
  std::uint32_t group = 0;  // InputRounding::group
  std::string refused = {};  // not empty: tessera does not implement this rounding; the text is the key and its value
  LayerPatterns layers = {};

  [[nodiscard]] bool rounds_as(const ActivationScheme& other) const noexcept {
    return to == other.to && is_static == other.is_static && group == other.group && refused == other.refused;
  }
};

enum class AwqLayout : std::uint8_t { gemm, gemv };

// The options of a folder's quantisation.
struct QuantisationOptions {
  unsigned bits = 4;
  unsigned unpacked_bits = 8;  // bits of integers that take a byte each (compressed-tensors): 4 if the integers of all layers have 4 bits
  std::int64_t group = 128;  // consecutive inputs that share a scale; below 1: all of them
  bool symmetric = true;
  bool symmetry_varies = false;  // layers may differ in `symmetric`
  GptqVersion gptq_version = GptqVersion::v1;
  AwqLayout awq_layout = AwqLayout::gemm;
  std::vector<ActivationScheme> activations = {};  // inputs of layers that match no element are not rounded
  std::uint64_t block_outputs = 0, block_inputs = 0;  // FP8: dimensions of a scale's block; 0: they follow from the scales' shape
};

// Read a method's options from quantization_config. Errors: unsupported, the message names a key whose value is not implemented.
[[nodiscard]] Status read_gptq_options(const Json& config, QuantisationOptions& options);
[[nodiscard]] Status read_awq_options(const Json& config, QuantisationOptions& options);
[[nodiscard]] Status read_squeezellm_options(const Json& config, QuantisationOptions& options);
[[nodiscard]] Status read_compressed_options(const Json& config, QuantisationOptions& options);
[[nodiscard]] Status read_fp8_options(const Json& config, QuantisationOptions& options);
[[nodiscard]] Status read_modelopt_options(const Json& config, QuantisationOptions& options);
// Reads the rounding of inputs from an element of config_groups.
[[nodiscard]] ActivationScheme read_activations(const Json& group);
[[nodiscard]] Status read_bitsandbytes_options(const Json& config, QuantisationOptions& options);

// Make the matrix whose unquantised tensor would be called "STEM.weight" (mxfp4_experts: "STEM"), where STEM is the argument `stem`.
// Return nullptr if the folder has no tensors of this kind for it. Errors (the message names the tensor): corrupt_file; unsupported.
[[nodiscard]] MadeMatrix gptq_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);
[[nodiscard]] MadeMatrix awq_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);
[[nodiscard]] MadeMatrix codebook_rows_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);
[[nodiscard]] MadeMatrix packed_integers_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);
[[nodiscard]] MadeMatrix fp8_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);
[[nodiscard]] MadeMatrix nvfp4_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);
[[nodiscard]] MadeMatrix mxfp4_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);
[[nodiscard]] MadeMatrix mxfp4_experts(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);
[[nodiscard]] MadeMatrix codebook4_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);
[[nodiscard]] MadeMatrix scaled_int8_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options);

// Return the value of a key of an object; the last argument if the key is absent or its value has another type.
[[nodiscard]] std::int64_t integer_in(const Json* object, std::string_view key, std::int64_t usual) noexcept;
[[nodiscard]] bool flag_in(const Json* object, std::string_view key, bool usual) noexcept;
[[nodiscard]] std::string_view text_in(const Json* object, std::string_view key) noexcept;  // empty text if absent
// Reads a list of two sizes, such as [128, 128]; leaves the sizes as they are if the key has another value.
void read_block(const Json* object, std::string_view key, QuantisationOptions& options) noexcept;

// Makes the error "quantization_config.KEY: tessera does not read VALUE".
[[nodiscard]] Error not_read(std::string_view key, std::string_view value);
// Reads "bits" and "group_size". Errors: unsupported, the number of bits is not one of `allowed`.
[[nodiscard]] Status read_bits_and_group(const Json& config, std::string_view bits_key, std::span<const unsigned> allowed, QuantisationOptions& options);

}  // namespace tessera::detail::hub
