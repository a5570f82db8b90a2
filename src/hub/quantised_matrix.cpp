#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/quantised/awq.hpp"
#include "files/quantised/codebook4.hpp"
#include "files/quantised/fp4.hpp"
#include "files/quantised/fp8.hpp"
#include "files/quantised/gptq.hpp"
#include "files/quantised/packed_integers.hpp"
#include "files/quantised/scaled_int8.hpp"
#include "hub/matrix.hpp"

namespace tessera::detail::hub {

namespace {

using Bytes = std::vector<std::byte>;

// A tensor of the folder, and its index.
struct Found {
  std::uint32_t index = 0;
  const SafetensorsTensor* tensor = nullptr;
  explicit operator bool() const noexcept { return tensor != nullptr; }
};

Found look_up(const SafetensorsFolder& folder, std::string_view stem, std::string_view end) {
  const SafetensorsTensor* tensor = folder.find(std::string(stem).append(end));
  if (tensor == nullptr) return {};
  return {static_cast<std::uint32_t>(tensor - folder.tensors().data()), tensor};
}

Error wrong_tensor(ErrorCode code, const SafetensorsFolder& folder, const SafetensorsTensor& tensor, std::string_view what) {
  return error_at(code, folder.file_name(tensor.part), "tensor {}: {}", printable(tensor.name), what);
}

Result<Bytes> bytes_of(const SafetensorsFolder& folder, const Found& found) {
  Bytes bytes(found ? found.tensor->bytes : 0);
  if (found) TESSERA_TRY_STATUS(folder.read(*found.tensor, 0, bytes));
  return bytes;
}

std::uint64_t dim(const Found& found, std::size_t i) noexcept { return found && i < found.tensor->dims.size() ? found.tensor->dims[i] : 1; }

std::optional<ScaleType> scale_type(const Found& found) noexcept {
  switch (found.tensor->type) {
    case SafetensorsType::f16: return ScaleType::f16;
    case SafetensorsType::bf16: return ScaleType::bf16;
    case SafetensorsType::f32: return ScaleType::f32;
    default: return std::nullopt;
  }
}

// A matrix whose rows are decoded from several tensors. They are read when the first row is asked for, and dropped behind the last one.
class DecodedMatrix final : public Matrix {
 public:
  // Decodes rows from the tensors' bytes, which come in the order of `tensors`.
  using Decode = std::function<Status(std::span<const Bytes>, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out)>;

  DecodedMatrix(DType form, std::vector<std::uint64_t> dims, const std::vector<Found>& tensors, Decode decode, float factor = 1.0f)
      : form_(form), decode_(std::move(decode)) {
    dims_ = std::move(dims);
    factor_ = factor;
    for (const Found& found : tensors) {
      has_.push_back(static_cast<bool>(found));
      if (!found) continue;
      tensors_.push_back(found.index);
      staging_ += found.tensor->bytes;
    }
    rows_ = 1;
    for (std::size_t i = 0; i + 1 < dims_.size(); ++i) rows_ *= dims_[i];
  }

  [[nodiscard]] DType form() const noexcept override { return form_; }
  [[nodiscard]] std::span<const std::uint32_t> tensors() const noexcept override { return tensors_; }
  [[nodiscard]] std::uint64_t staging_bytes() const noexcept override { return staging_; }
  void release() const noexcept override {
    const std::lock_guard lock(mutex_);
    loaded_.clear();
  }

  [[nodiscard]] Status read(const SafetensorsFolder& folder, std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    if (loaded_.empty()) {
      std::vector<Bytes> bytes;
      std::size_t next = 0;
      for (const bool has : has_) {
        const std::uint32_t index = has ? tensors_[next++] : 0;
        TESSERA_TRY(Bytes own, bytes_of(folder, has ? Found{index, &folder.tensors()[index]} : Found{}));
        bytes.push_back(std::move(own));
      }
      loaded_ = std::move(bytes);
    }
    const Status status = read_loaded(offset, out);
    const std::uint64_t end = rows_ * row_bytes();
    if (!status || offset + out.size() >= end) loaded_.clear();
    if (status) return status;
    return error_at(status.error().code(), folder.tensors()[tensors_[0]].name, "{}", status.error().text());
  }

 private:
  [[nodiscard]] std::uint64_t row_bytes() const noexcept { return form_row_bytes(form_, dims_.back()); }

  Status read_loaded(std::uint64_t offset, std::span<std::byte> out) const {
    const std::uint64_t size = row_bytes();
    if (offset % size == 0 && out.size() % size == 0) return decode_(loaded_, offset / size, out.size() / size, out);
    Bytes row(size);  // a part of a row
    while (!out.empty()) {
      TESSERA_TRY_STATUS(decode_(loaded_, offset / size, 1, row));
      const std::uint64_t in_row = offset % size, count = std::min<std::uint64_t>(size - in_row, out.size());
      std::memcpy(out.data(), row.data() + in_row, count);
      out = out.subspan(count);
      offset += count;
    }
    return {};
  }

  DType form_;
  Decode decode_;
  std::vector<bool> has_;
  std::vector<std::uint32_t> tensors_;
  std::uint64_t rows_ = 0, staging_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<Bytes> loaded_;
};

using Made = Result<std::shared_ptr<const Matrix>>;

Made make(DType form, std::uint64_t outputs, std::uint64_t inputs, const std::vector<Found>& tensors, DecodedMatrix::Decode decode, float factor = 1.0f) {
  return std::shared_ptr<const Matrix>(
      std::make_shared<const DecodedMatrix>(form, std::vector<std::uint64_t>{outputs, inputs}, tensors, std::move(decode), factor));
}

// Returns whether the inputs' groups are in another order than input / group.
Result<bool> is_reordered(const SafetensorsFolder& folder, const Found& g_idx, std::uint64_t group) {
  TESSERA_TRY(const Bytes bytes, bytes_of(folder, g_idx));
  for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
    std::int32_t own = 0;
    std::memcpy(&own, bytes.data() + i * 4, 4);
    if (static_cast<std::uint64_t>(own) != i / group) return true;
  }
  return false;
}

Made gptq(const SafetensorsFolder& folder, std::string_view stem, unsigned bits, std::int64_t group, bool symmetric, bool version_2) {
  const Found weight = look_up(folder, stem, ".qweight"), zeros = look_up(folder, stem, ".qzeros"), scales = look_up(folder, stem, ".scales"),
              order = look_up(folder, stem, ".g_idx");
  if (!weight) return std::shared_ptr<const Matrix>();
  if (!scales || !scale_type(scales) || !zeros || dim(weight, 0) == 0 || dim(weight, 1) == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, *weight.tensor, "scales and qzeros belong to it");
  }
  const std::uint64_t inputs = dim(weight, 0) * 32 / bits, outputs = dim(weight, 1);
  GptqLayer layer{.shape = {outputs, inputs, group < 1 ? inputs : static_cast<std::uint64_t>(group)}, .bits = bits,
                  .version = version_2 ? GptqVersion::v2 : GptqVersion::v1, .symmetric = symmetric, .scale_type = *scale_type(scales),
                  .qweight = {}, .qzeros = {}, .scales = {}};
  TESSERA_TRY(const bool reordered, is_reordered(folder, order, layer.shape.group));
  return make(gptq_form(layer, reordered), outputs, inputs, {weight, zeros, scales, order},
              [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                layer.qweight = bytes[0], layer.qzeros = bytes[1], layer.scales = bytes[2], layer.g_idx = bytes[3];
                TESSERA_TRY(const bool act_order, check_gptq(layer));
                return decode_gptq(layer, act_order, first, rows, out);
              });
}

Made awq(const SafetensorsFolder& folder, std::string_view stem, std::int64_t group) {
  const Found weight = look_up(folder, stem, ".qweight"), zeros = look_up(folder, stem, ".qzeros"), scales = look_up(folder, stem, ".scales");
  if (!weight) return std::shared_ptr<const Matrix>();
  if (!scales || !scale_type(scales) || !zeros || dim(weight, 0) == 0 || dim(weight, 1) == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, *weight.tensor, "scales and qzeros belong to it");
  }
  const std::uint64_t inputs = dim(weight, 0), outputs = dim(weight, 1) * 8;
  AwqLayer layer{.shape = {outputs, inputs, group < 1 ? inputs : static_cast<std::uint64_t>(group)}, .scale_type = *scale_type(scales),
                 .qweight = {}, .qzeros = {}, .scales = {}};
  return make(awq_form(layer), outputs, inputs, {weight, zeros, scales},
              [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                layer.qweight = bytes[0], layer.qzeros = bytes[1], layer.scales = bytes[2];
                TESSERA_TRY_STATUS(check_awq(layer));
                return decode_awq(layer, first, rows, out);
              });
}

Made packed_integers(const SafetensorsFolder& folder, std::string_view stem, unsigned bits, std::int64_t group, bool is_packed) {
  const Found weight = look_up(folder, stem, is_packed ? ".weight_packed" : ".weight"), scales = look_up(folder, stem, ".weight_scale"),
              zeros = look_up(folder, stem, ".weight_zero_point"), order = look_up(folder, stem, ".weight_g_idx"),
              shape = look_up(folder, stem, ".weight_shape");
  if (!weight || (!is_packed && !scales)) return std::shared_ptr<const Matrix>();
  if (!scales || !scale_type(scales) || dim(weight, 0) == 0 || dim(weight, 1) == 0 || dim(scales, 1) == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, *weight.tensor, "weight_scale belongs to it, of F16, BF16 or F32");
  }
  std::uint64_t inputs = is_packed ? dim(weight, 1) * 32 / bits : dim(weight, 1);
  if (shape) {  // [outputs, inputs], as integers: packing has padded the rows
    TESSERA_TRY(const Bytes said, bytes_of(folder, shape));
    const std::size_t size = said.size() / 2;
    if (size == 4 || size == 8) {
      std::uint64_t own = 0;
      std::memcpy(&own, said.data() + size, size);
      if (own != 0 && own <= inputs) inputs = own;
    }
  }
  const std::uint64_t outputs = dim(weight, 0), groups = dim(scales, 1);
  const std::uint64_t own_group = groups == 1 ? inputs : group < 1 ? (inputs + groups - 1) / groups : static_cast<std::uint64_t>(group);
  PackedIntegersLayer layer{.shape = {outputs, inputs, own_group}, .bits = bits, .packed = is_packed, .scale_type = *scale_type(scales),
                            .weight = {}, .scales = {}};
  TESSERA_TRY(const bool reordered, is_reordered(folder, order, own_group));
  // The form depends on whether there are zero points, not on which.
  constexpr std::byte kSome{};
  if (zeros) layer.zeros = std::span(&kSome, 1);
  const DType form = packed_integers_form(layer, reordered);
  layer.zeros = {};
  return make(form, outputs, inputs, {weight, scales, zeros, order, shape},
              [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                layer.weight = bytes[0], layer.scales = bytes[1], layer.zeros = bytes[2], layer.g_idx = bytes[3];
                TESSERA_TRY(const bool in_other_order, check_packed_integers(layer));
                std::uint64_t rounded = 0;
                return decode_packed_integers(layer, in_other_order, first, rows, out, rounded);
              });
}

Made fp8(const SafetensorsFolder& folder, std::string_view stem, std::uint64_t block_outputs, std::uint64_t block_inputs) {
  const Found weight = look_up(folder, stem, ".weight");
  const bool is_e4m3 = weight && weight.tensor->type == SafetensorsType::f8_e4m3;
  if (!is_e4m3 && !(weight && weight.tensor->type == SafetensorsType::f8_e5m2)) return std::shared_ptr<const Matrix>();
  Found scales = look_up(folder, stem, ".weight_scale_inv");
  if (!scales) scales = look_up(folder, stem, ".weight_scale");
  if (!scales || weight.tensor->dims.size() != 2 || dim(weight, 0) == 0 || dim(weight, 1) == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, *weight.tensor, "weight_scale_inv or weight_scale belongs to a matrix of FP8");
  }
  Fp8Layer layer{.outputs = dim(weight, 0), .inputs = dim(weight, 1), .block_outputs = block_outputs, .block_inputs = block_inputs,
                 .type = is_e4m3 ? Fp8Type::e4m3 : Fp8Type::e5m2, .weight = {}, .scales = {}};
  switch (scales.tensor->type) {
    case SafetensorsType::f32: layer.scale_type = Fp8ScaleType::f32; break;
    case SafetensorsType::bf16: layer.scale_type = Fp8ScaleType::bf16; break;
    case SafetensorsType::f16: layer.scale_type = Fp8ScaleType::f16; break;
    case SafetensorsType::f8_e8m0: layer.scale_type = Fp8ScaleType::e8m0; break;
    default: return wrong_tensor(ErrorCode::unsupported, folder, *scales.tensor, "scales of FP8 are F32, BF16, F16 or F8_E8M0");
  }
  if (block_outputs == 0) {  // one scale for the matrix, or one for each output
    const bool is_one = dim(scales, 0) * dim(scales, 1) == 1;
    layer.block_outputs = is_one ? layer.outputs : 1;
    layer.block_inputs = layer.inputs;
  }
  // The scale of activations belongs to the arithmetic of the format, not to the weights: it is not used.
  const Found input = look_up(folder, stem, ".input_scale");
  return make(DType::bf16, layer.outputs, layer.inputs, {weight, scales, input},
              [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                layer.weight = bytes[0], layer.scales = bytes[1];
                TESSERA_TRY_STATUS(check_fp8(layer));
                return decode_fp8(layer, DType::bf16, first, rows, out);
              });
}

Made nvfp4(const SafetensorsFolder& folder, std::string_view stem) {
  Found weight = look_up(folder, stem, ".weight_packed");
  const bool is_compressed = static_cast<bool>(weight);
  if (!is_compressed) weight = look_up(folder, stem, ".weight");
  if (!weight || weight.tensor->type != SafetensorsType::u8) return std::shared_ptr<const Matrix>();
  const Found scales = look_up(folder, stem, ".weight_scale"), whole = look_up(folder, stem, is_compressed ? ".weight_global_scale" : ".weight_scale_2");
  const Found input = look_up(folder, stem, is_compressed ? ".input_global_scale" : ".input_scale");
  if (!scales || !whole || whole.tensor->type != SafetensorsType::f32 || whole.tensor->bytes != 4 || weight.tensor->dims.size() != 2) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, *weight.tensor, "weight_scale and a scale of the whole matrix (one F32 number) belong to NVFP4");
  }
  TESSERA_TRY(const Bytes bytes, bytes_of(folder, whole));
  float factor = 0.0f;
  std::memcpy(&factor, bytes.data(), 4);
  if (is_compressed) factor = 1.0f / factor;
  if (!std::isfinite(factor) || factor <= 0.0f) return wrong_tensor(ErrorCode::corrupt_file, folder, *whole.tensor, "it is not a positive number");
  Fp4Rows layer{.rows = dim(weight, 0), .inputs = dim(weight, 1) * 2, .weights = {}, .scales = {}};
  return make(DType::nvfp4, layer.rows, layer.inputs, {weight, scales, whole, input},
              [layer](std::span<const Bytes> from, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                layer.weights = from[0], layer.scales = from[1];
                TESSERA_TRY_STATUS(check_nvfp4(layer));
                return decode_nvfp4(layer, {first, rows}, out);
              }, factor);
}

// gpt-oss: the experts' matrices of one kind. `stem` is "....experts.down_proj".
Made mxfp4(const SafetensorsFolder& folder, std::string_view stem) {
  const Found weight = look_up(folder, stem, "_blocks"), scales = look_up(folder, stem, "_scales");
  if (!weight) return std::shared_ptr<const Matrix>();
  if (!scales || weight.tensor->dims.size() != 4 || dim(weight, 3) != 16 || weight.tensor->bytes == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, *weight.tensor, "blocks of MXFP4 are [experts, outputs, inputs / 32, 16], and scales belong to them");
  }
  const std::uint64_t experts = dim(weight, 0), outputs = dim(weight, 1), inputs = dim(weight, 2) * 32;
  Fp4Rows layer{.rows = experts * outputs, .inputs = inputs, .weights = {}, .scales = {}};
  auto decode = [layer](std::span<const Bytes> from, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
    layer.weights = from[0], layer.scales = from[1];
    TESSERA_TRY_STATUS(check_mxfp4(layer));
    return decode_mxfp4(layer, {first, rows}, out);
  };
  return std::shared_ptr<const Matrix>(std::make_shared<const DecodedMatrix>(
      DType::mxfp4, std::vector<std::uint64_t>{experts, outputs, inputs}, std::vector<Found>{weight, scales}, std::move(decode)));
}

// bitsandbytes describes a matrix by a JSON text in a tensor.
Made codebook4(const SafetensorsFolder& folder, std::string_view stem) {
  const Found weight = look_up(folder, stem, ".weight"), table = look_up(folder, stem, ".weight.quant_map"),
              absmax = look_up(folder, stem, ".weight.absmax"), nested = look_up(folder, stem, ".weight.nested_absmax"),
              nested_table = look_up(folder, stem, ".weight.nested_quant_map");
  if (!weight || weight.tensor->type != SafetensorsType::u8) return std::shared_ptr<const Matrix>();
  Found state = look_up(folder, stem, ".weight.quant_state.bitsandbytes__nf4");
  if (!state) state = look_up(folder, stem, ".weight.quant_state.bitsandbytes__fp4");
  if (!state || !table || !absmax || state.tensor->bytes > (1u << 16)) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, *weight.tensor, "quant_state, quant_map and absmax belong to a matrix of bitsandbytes");
  }
  TESSERA_TRY(const Bytes text, bytes_of(folder, state));
  const auto json = Json::parse({reinterpret_cast<const char*>(text.data()), text.size()});
  const Json* shape = json ? json->find("shape") : nullptr;
  const auto whole = [&](std::string_view key, std::int64_t usual) {
    const Json* value = json ? json->find(key) : nullptr;
    return value != nullptr && value->integer() != nullptr ? *value->integer() : usual;
  };
  const auto at = [&](std::size_t i) -> std::int64_t {
    const bool is_pair = shape != nullptr && shape->elements() != nullptr && shape->elements()->size() == 2;
    return is_pair && (*shape->elements())[i].integer() != nullptr ? *(*shape->elements())[i].integer() : 0;
  };
  if (at(0) < 1 || at(1) < 1 || at(0) > (std::int64_t{1} << 31) || at(1) > (std::int64_t{1} << 31) || whole("blocksize", 64) < 1 || whole("nested_blocksize", 256) < 1) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, *state.tensor, "expected a JSON object with shape [outputs, inputs] and blocksize");
  }
  Codebook4Layer layer{.outputs = static_cast<std::uint64_t>(at(0)), .inputs = static_cast<std::uint64_t>(at(1)),
                       .block = static_cast<std::uint64_t>(whole("blocksize", 64)), .nested_block = static_cast<std::uint64_t>(whole("nested_blocksize", 256)),
                       .weight = {}, .table = {}, .absmax = {}};
  const Json* offset = json->find("nested_offset");
  if (offset != nullptr && offset->number() != nullptr) layer.nested_offset = static_cast<float>(*offset->number());
  return make(DType::f32, layer.outputs, layer.inputs, {weight, table, absmax, nested, nested_table, state},
              [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                layer.weight = bytes[0], layer.table = bytes[1], layer.absmax = bytes[2], layer.nested_absmax = bytes[3], layer.nested_table = bytes[4];
                TESSERA_TRY_STATUS(check_codebook4(layer));
                return decode_codebook4(layer, first, rows, out);
              });
}

// bitsandbytes in 8 bits.
Made scaled_int8(const SafetensorsFolder& folder, std::string_view stem) {
  const Found weight = look_up(folder, stem, ".weight"), scales = look_up(folder, stem, ".SCB"), format = look_up(folder, stem, ".weight_format");
  if (!weight || weight.tensor->type != SafetensorsType::i8) return std::shared_ptr<const Matrix>();
  if (!scales || scales.tensor->type != SafetensorsType::f32 || weight.tensor->dims.size() != 2 || weight.tensor->bytes == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, *weight.tensor, "SCB, of F32, belongs to a matrix of bitsandbytes in 8 bits");
  }
  ScaledInt8Layer layer{.outputs = dim(weight, 0), .inputs = dim(weight, 1), .weight = {}, .scb = {}};
  return make(DType::f32, layer.outputs, layer.inputs, {weight, scales, format},
              [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                layer.weight = bytes[0], layer.scb = bytes[1];
                TESSERA_TRY_STATUS(check_scaled_int8(layer));
                return decode_scaled_int8(layer, first, rows, out);
              });
}

constexpr std::string_view kPlace = "config.json: quantization_config";

std::optional<std::int64_t> integer_in(const Json* object, std::string_view key) {
  const Json* value = find_in(object, key);
  return value == nullptr || value->integer() == nullptr ? std::nullopt : std::optional(*value->integer());
}
bool flag_in(const Json* object, std::string_view key, bool usual) {
  const Json* value = find_in(object, key);
  return value == nullptr || value->boolean() == nullptr ? usual : *value->boolean();
}
std::string_view text_in(const Json* object, std::string_view key) {
  const Json* value = find_in(object, key);
  return value == nullptr || value->string() == nullptr ? std::string_view() : std::string_view(*value->string());
}

Error not_read(std::string_view key, std::string_view value) {
  return error_at(ErrorCode::unsupported, fmt::format("{}.{}", kPlace, key),
                  "the value is \"{}\", which tessera does not read: take the model in BF16, or a GGUF file of it", printable(value));
}

}  // namespace

// compressed-tensors has a list of groups of layers; a folder whose groups differ in the kind of numbers is not read.
Status Quantisation::read_compressed(const Json& config) {
  const std::string_view format = text_in(&config, "format");
  if (format == "pack-quantized") method_ = Method::packed_integers;
  else if (format == "int-quantized") method_ = Method::packed_integers, has_packed_ = false, bits_ = 8;
  else if (format == "float-quantized" || format == "naive-quantized") method_ = Method::fp8;
  else if (format == "nvfp4-pack-quantized") method_ = Method::nvfp4;
  else return not_read("format", format);
  const Json* groups = find_in(&config, "config_groups");
  if (groups == nullptr || groups->members() == nullptr) return {};
  bool is_first = true;
  for (const auto& [name, group] : *groups->members()) {
    const Json* weights = find_in(&group, "weights");
    const auto bits = integer_in(weights, "num_bits"), size = integer_in(weights, "group_size");
    const std::int64_t own = size.value_or(0);
    if (!is_first && (own != group_ || static_cast<unsigned>(bits.value_or(0)) != bits_)) {
      return error_at(ErrorCode::unsupported, fmt::format("{}.config_groups.{}", kPlace, printable(name)), "its bits or group size differ from another group's");
    }
    is_first = false;
    group_ = own;
    if (bits && *bits > 0 && *bits <= 16) bits_ = static_cast<unsigned>(*bits);
    const Json* block = find_in(weights, "block_structure");
    if (block != nullptr && block->elements() != nullptr && block->elements()->size() == 2) {
      block_outputs_ = static_cast<std::uint64_t>(std::max<std::int64_t>((*block->elements())[0].integer() != nullptr ? *(*block->elements())[0].integer() : 0, 0));
      block_inputs_ = static_cast<std::uint64_t>(std::max<std::int64_t>((*block->elements())[1].integer() != nullptr ? *(*block->elements())[1].integer() : 0, 0));
    }
  }
  return {};
}

Result<Quantisation> Quantisation::read(const Config& config) {
  Quantisation result;
  const Json* how = config.find_anywhere("quantization_config");
  if (how == nullptr) how = config.find_anywhere("compression_config");
  if (how == nullptr) return result;
  const std::string_view method = text_in(how, "quant_method");
  const std::int64_t bits = integer_in(how, "bits").value_or(4);
  result.group_ = integer_in(how, "group_size").value_or(128);
  if (bits < 2 || bits > 8) return not_read("bits", std::to_string(bits));
  result.bits_ = static_cast<unsigned>(bits);
  if (method == "gptq") {
    result.method_ = Method::gptq;
    result.symmetric_ = flag_in(how, "sym", true);
    result.version_2_ = text_in(how, "checkpoint_format") == "gptq_v2";
    if (text_in(how, "checkpoint_format").starts_with("marlin")) return not_read("checkpoint_format", "marlin");
  } else if (method == "awq") {
    result.method_ = Method::awq;
    const std::string_view version = text_in(how, "version");
    if (!version.empty() && version != "gemm" && version != "GEMM") return not_read("version", version);
    if (bits != 4) return not_read("bits", std::to_string(bits));
  } else if (method == "compressed-tensors") {
    TESSERA_TRY_STATUS(result.read_compressed(*how));
  } else if (method == "fp8") {
    result.method_ = Method::fp8;
    const Json* block = find_in(how, "weight_block_size");
    if (block != nullptr && block->elements() != nullptr && block->elements()->size() == 2 && (*block->elements())[0].integer() != nullptr &&
        (*block->elements())[1].integer() != nullptr && *(*block->elements())[0].integer() > 0 && *(*block->elements())[1].integer() > 0) {
      result.block_outputs_ = static_cast<std::uint64_t>(*(*block->elements())[0].integer());
      result.block_inputs_ = static_cast<std::uint64_t>(*(*block->elements())[1].integer());
    }
  } else if (method == "modelopt") {
    const std::string_view algorithm = text_in(how, "quant_algo");
    if (algorithm == "FP8") result.method_ = Method::fp8;
    else if (algorithm == "NVFP4") result.method_ = Method::nvfp4;
    else return not_read("quant_algo", algorithm);
  } else if (method == "mxfp4") {
    result.method_ = Method::mxfp4;
  } else if (method == "bitsandbytes" && flag_in(how, "load_in_4bit", false)) {
    result.method_ = Method::codebook4;
  } else if (method == "bitsandbytes" && flag_in(how, "load_in_8bit", false)) {
    result.method_ = Method::scaled_int8;
  } else {
    return not_read("quant_method", method);
  }
  return result;
}

Result<std::shared_ptr<const Matrix>> Quantisation::find(const SafetensorsFolder& folder, std::string_view name) const {
  constexpr std::string_view kEnd = ".weight";
  if (method_ == Method::mxfp4) return mxfp4(folder, name);
  if (!name.ends_with(kEnd)) return std::shared_ptr<const Matrix>();
  const std::string_view stem = name.substr(0, name.size() - kEnd.size());
  switch (method_) {
    case Method::gptq: return gptq(folder, stem, bits_, group_, symmetric_, version_2_);
    case Method::awq: return awq(folder, stem, group_);
    case Method::packed_integers: return packed_integers(folder, stem, bits_, group_, has_packed_);
    case Method::fp8: return fp8(folder, stem, block_outputs_, block_inputs_);
    case Method::nvfp4: return nvfp4(folder, stem);
    case Method::codebook4: return codebook4(folder, stem);
    case Method::scaled_int8: return scaled_int8(folder, stem);
    case Method::mxfp4:
    case Method::none: break;
  }
  return std::shared_ptr<const Matrix>();
}

}  // namespace tessera::detail::hub
