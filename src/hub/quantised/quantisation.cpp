// The table of methods, and the functions that choose a method and find a folder's quantised matrices.
#include "hub/quantised/quantisation.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::string_view kPlace = "config.json: quantization_config";

using ReadOptions = Status (*)(const Json&, QuantisationOptions&);
using ReadMatrix = MadeMatrix (*)(const SafetensorsFolder&, std::string_view, const QuantisationOptions&);

Status no_options(const Json&, QuantisationOptions&) { return {}; }

}  // namespace

struct QuantisationMethod {
  std::string_view name;  // quant_method
  ReadOptions read_options;
  std::array<ReadMatrix, 4> readers;  // tried in this order
  // The tensor that each matrix has in this method, for an error. Not empty: a folder without quantised matrices is refused. Empty: a folder
  // may state the method and have plain weights, for example to be quantised when it is loaded (bitsandbytes).
  std::string_view packed = {};
};

namespace {

constexpr QuantisationMethod kMethods[] = {
    {"gptq", read_gptq_options, {gptq_matrix}, ".qweight"},
    {"awq", read_awq_options, {awq_matrix}, ".qweight"},
    {"squeezellm", read_squeezellm_options, {codebook_rows_matrix}},
    {"compressed-tensors", read_compressed_options, {packed_integers_matrix, fp8_matrix, nvfp4_matrix, mxfp4_matrix}},
    {"fp8", read_fp8_options, {fp8_matrix}},
    {"modelopt", read_modelopt_options, {fp8_matrix, nvfp4_matrix}},
    {"mxfp4", no_options, {mxfp4_experts}},
    {"bitsandbytes", read_bitsandbytes_options, {codebook4_matrix, scaled_int8_matrix}},
};

// The ends of names of tensors that belong to quantised matrices but are not needed to decode the weights. Scales of activations are read
// only if inputs are rounded (input_rounding()). Scales of keys and values are never used: the caller chooses the KV type, and the codec
// of this type computes its own scales.
constexpr std::array<std::string_view, 11> kBeside = {".input_scale",  ".input_zero_point", ".input_global_scale", ".activation_scale", ".k_scale", ".v_scale",
                                                      ".k_zero_point", ".v_zero_point",     ".q_scale",            ".kv_scale",         ".output_scale"};

std::string known_methods() {
  std::string names;
  for (const QuantisationMethod& method : kMethods) names.append(names.empty() ? "" : ", ").append(method.name);
  return names;
}

}  // namespace

std::int64_t integer_in(const Json* object, std::string_view key, std::int64_t usual) noexcept {
  const Json* value = find_in(object, key);
  return value == nullptr || value->integer() == nullptr ? usual : *value->integer();
}

bool flag_in(const Json* object, std::string_view key, bool usual) noexcept {
  const Json* value = find_in(object, key);
  return value == nullptr || value->boolean() == nullptr ? usual : *value->boolean();
}

std::string_view text_in(const Json* object, std::string_view key) noexcept {
  const Json* value = find_in(object, key);
  return value == nullptr || value->string() == nullptr ? std::string_view() : std::string_view(*value->string());
}

void read_block(const Json* object, std::string_view key, QuantisationOptions& options) noexcept {
  const Json* block = find_in(object, key);
  if (block == nullptr || block->elements() == nullptr || block->elements()->size() != 2) return;
  const std::int64_t* outputs = (*block->elements())[0].integer();
  const std::int64_t* inputs = (*block->elements())[1].integer();
  if (outputs == nullptr || inputs == nullptr || *outputs < 1 || *inputs < 1) return;
  options.block_outputs = static_cast<std::uint64_t>(*outputs);
  options.block_inputs = static_cast<std::uint64_t>(*inputs);
}

Error not_read(std::string_view key, std::string_view value) {
  return error_at(ErrorCode::unsupported, fmt::format("{}.{}", kPlace, key), "the value is \"{}\", which tessera does not read: take the model in BF16, or a GGUF file of it",
                  printable(value));
}

Status read_bits_and_group(const Json& config, std::string_view bits_key, std::span<const unsigned> allowed, QuantisationOptions& options) {
  const std::int64_t bits = integer_in(&config, bits_key, 4);
  if (std::ranges::none_of(allowed, [&](unsigned own) { return own == bits; })) return not_read(bits_key, std::to_string(bits));
  options.bits = static_cast<unsigned>(bits);
  options.group = integer_in(&config, "group_size", integer_in(&config, "q_group_size", 128));
  return {};
}

Result<Quantisation> Quantisation::read(const Config& config) {
  Quantisation result;
  const Json* how = config.quantisation();
  if (how == nullptr) return result;
  std::string_view name = text_in(how, "quant_method");
  if (name.empty()) {  // an older file belongs to one method, and does not name it
    if (find_in(how, "quant_algo") != nullptr) name = "modelopt";
    else if (find_in(how, "w_bit") != nullptr) name = "awq";
    else if (find_in(how, "desc_act") != nullptr) name = "gptq";
  }
  if (name.starts_with("modelopt")) name = "modelopt";  // "modelopt_fp4"
  const auto* method = std::ranges::find(kMethods, name, &QuantisationMethod::name);
  if (method == std::end(kMethods)) {
    return error_at(ErrorCode::unsupported, fmt::format("{}.quant_method", kPlace), "the value is \"{}\"; tessera reads {}: take the model in one of them, in BF16, or as a GGUF file",
                    printable(name), known_methods());
  }
  auto options = std::make_shared<QuantisationOptions>();
  TESSERA_TRY_STATUS(method->read_options(*how, *options));
  result.method_ = method;
  result.options_ = std::move(options);
  return result;
}

Result<std::shared_ptr<const Matrix>> Quantisation::find(const SafetensorsFolder& folder, std::string_view name) const {
  constexpr std::string_view kEnd = ".weight";
  const std::string_view stem = name.ends_with(kEnd) ? name.substr(0, name.size() - kEnd.size()) : name;
  for (const ReadMatrix reader : method_ == nullptr ? std::array<ReadMatrix, 4>() : method_->readers) {
    if (reader == nullptr) break;
    TESSERA_TRY(auto matrix, reader(folder, stem, *options_));
    if (matrix != nullptr) return matrix;
  }
  return std::shared_ptr<const Matrix>();
}

Status Quantisation::check_used(const SafetensorsFolder& folder) const {
  if (method_ == nullptr || method_->packed.empty()) return {};
  if (std::ranges::any_of(folder.tensors(), [&](const SafetensorsTensor& tensor) { return tensor.name.ends_with(method_->packed); })) return {};
  return error_at(ErrorCode::corrupt_file, fmt::format("{}.quant_method", kPlace),
                  "the value is \"{}\", but no tensor is quantised (none has a name that ends in \"{}\"): config.json and the *.safetensors are of different models; "
                  "download both from the same place, or remove quantization_config if the weights are meant to be plain",
                  method_->name, method_->packed);
}

bool Quantisation::is_beside(std::string_view name) const noexcept {
  return method_ != nullptr && std::ranges::any_of(kBeside, [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace tessera::detail::hub
