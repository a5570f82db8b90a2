// Reads matrices of bitsandbytes: 4 bits (NF4, FP4) and 8 bits (LLM.int8()).
#include "core/error.hpp"
#include "files/quantised/codebook4.hpp"
#include "files/quantised/scaled_int8.hpp"
#include "hub/config.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 31;

// Returns the number type to which bitsandbytes decodes. (Weights are rounded to this type.)
DType form_of(std::string_view dtype) noexcept {
  if (dtype.ends_with("bfloat16")) return DType::bf16;
  return dtype.ends_with("float16") ? DType::f16 : DType::f32;
}

}  // namespace

Status read_bitsandbytes_options(const Json& config, QuantisationOptions&) {
  const bool has_4 = flag_in(&config, "load_in_4bit", false) || flag_in(&config, "_load_in_4bit", false);
  const bool has_8 = flag_in(&config, "load_in_8bit", false) || flag_in(&config, "_load_in_8bit", false);
  if (!has_4 && !has_8) return not_read("quant_method", "bitsandbytes without load_in_4bit or load_in_8bit");
  if (const std::string_view storage = text_in(&config, "bnb_4bit_quant_storage"); has_4 && !storage.empty() && storage != "uint8" && storage != "torch.uint8") {
    return not_read("bnb_4bit_quant_storage", storage);
  }
  return {};
}

// Makes a matrix of NF4 or FP4. One of its tensors has a JSON text that describes the matrix.
MadeMatrix codebook4_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions&) {
  const Found weight = look_up(folder, stem, ".weight"), table = look_up(folder, stem, ".weight.quant_map"),
              absmax = look_up(folder, stem, ".weight.absmax"), nested = look_up(folder, stem, ".weight.nested_absmax"),
              nested_table = look_up(folder, stem, ".weight.nested_quant_map");
  if (!weight || weight.tensor->type != SafetensorsType::u8) return std::shared_ptr<const Matrix>();
  Found state = look_up(folder, stem, ".weight.quant_state.bitsandbytes__nf4");
  if (!state) state = look_up(folder, stem, ".weight.quant_state.bitsandbytes__fp4");
  if (!state || !table || !absmax || state.tensor->bytes > (1u << 16)) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "quant_state, quant_map and absmax belong to a matrix of bitsandbytes");
  }
  TESSERA_TRY(const Bytes text, bytes_of(folder, state));
  const auto parsed = Json::parse({reinterpret_cast<const char*>(text.data()), text.size()});
  const Json* json = parsed ? &*parsed : nullptr;
  const Json* shape = find_in(json, "shape");
  const bool is_pair = shape != nullptr && shape->elements() != nullptr && shape->elements()->size() == 2;
  const auto size = [&](std::size_t i) -> std::int64_t {
    const std::int64_t* whole = is_pair ? (*shape->elements())[i].integer() : nullptr;
    return whole == nullptr ? 0 : *whole;
  };
  const std::int64_t block = integer_in(json, "blocksize", 64), nested_block = integer_in(json, "nested_blocksize", 256);
  if (size(0) < 1 || size(1) < 1 || size(0) > kMostRows || size(1) > kMostRows || block < 1 || nested_block < 1) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, state, "expected a JSON object with shape [outputs, inputs] and blocksize");
  }
  Codebook4Layer layer{.outputs = static_cast<std::uint64_t>(size(0)), .inputs = static_cast<std::uint64_t>(size(1)), .block = static_cast<std::uint64_t>(block),
                       .nested_block = static_cast<std::uint64_t>(nested_block), .form = form_of(text_in(json, "dtype")), .weight = {}, .table = {}, .absmax = {}};
  if (const Json* offset = find_in(json, "nested_offset"); offset != nullptr && offset->number() != nullptr) layer.nested_offset = static_cast<float>(*offset->number());
  return decoded_matrix(layer.form, {layer.outputs, layer.inputs}, {weight, table, absmax, nested, nested_table, state},
                        [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                          layer.weight = bytes[0], layer.table = bytes[1], layer.absmax = bytes[2], layer.nested_absmax = bytes[3], layer.nested_table = bytes[4];
                          TESSERA_TRY_STATUS(check_codebook4(layer));
                          return decode_codebook4(layer, first, rows, out);
                        });
}

MadeMatrix scaled_int8_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions&) {
  const Found weight = look_up(folder, stem, ".weight"), scales = look_up(folder, stem, ".SCB"), format = look_up(folder, stem, ".weight_format");
  if (!weight || weight.tensor->type != SafetensorsType::i8) return std::shared_ptr<const Matrix>();
  if (!scales || scales.tensor->type != SafetensorsType::f32 || weight.tensor->dims.size() != 2 || weight.tensor->bytes == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "SCB, of F32, belongs to a matrix of bitsandbytes in 8 bits");
  }
  if (format) {  // U8: 0 means rows; other numbers are layouts for matrix products on GPUs
    TESSERA_TRY(const Bytes layout, bytes_of(folder, format));
    if (layout.size() != 1 || layout[0] != std::byte{0}) return wrong_tensor(ErrorCode::unsupported, folder, format, "weights in a GPU's layout are not read; save the model in rows");
  }
  ScaledInt8Layer layer{.outputs = weight.dim(0), .inputs = weight.dim(1), .weight = {}, .scb = {}};
  return decoded_matrix(DType::f32, {layer.outputs, layer.inputs}, {weight, scales, format},
                        [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                          layer.weight = bytes[0], layer.scb = bytes[1];
                          TESSERA_TRY_STATUS(check_scaled_int8(layer));
                          return decode_scaled_int8(layer, first, rows, out);
                        });
}

}  // namespace tessera::detail::hub
