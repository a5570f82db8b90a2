#include "plan.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include <tessera/formats/rows.hpp>

namespace tessera::quantize {

namespace {

bool ends_with_weight(std::string_view name) { return name.ends_with(".weight"); }

bool is_quantised(DType type) { return formats::block_of(type)->values > 1; }

// What a format becomes where rows are not whole blocks of it: llama.cpp's rule, then F16.
DType fitting(DType wanted, std::uint64_t row) {
  const auto fits = [&](DType type) { return row % formats::block_of(type)->values == 0; };
  if (fits(wanted)) return wanted;
  const DType smaller = wanted == DType::q4_k ? DType::q5_0 : wanted == DType::q5_k ? DType::q5_1 : DType::q8_0;
  return fits(smaller) ? smaller : DType::f16;
}

}  // namespace

std::optional<DType> parse_format(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  if (upper == "Q4_K_S") return DType::q4_k;
  if (upper == "Q5_K_S") return DType::q5_k;
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0,
                           DType::q5_1, DType::q4_k, DType::q5_k, DType::q6_k}) {
    if (upper == to_string(type)) return type;
  }
  return std::nullopt;
}

DType default_output(DType format) {
  const bool fine = !is_quantised(format) || format == DType::q8_0;
  return fine ? format : DType::q6_k;
}

std::uint32_t file_type(DType format) {
  switch (format) {
    case DType::f32: return 0;
    case DType::f16: return 1;
    case DType::q4_0: return 2;
    case DType::q4_1: return 3;
    case DType::q8_0: return 7;
    case DType::q5_0: return 8;
    case DType::q5_1: return 9;
    case DType::q4_k: return 14;  // "mostly Q4_K_S"
    case DType::q5_k: return 16;  // "mostly Q5_K_S"
    case DType::q6_k: return 18;
    case DType::bf16: return 32;
    default: return 1024;  // "guessed"
  }
}

Result<std::vector<Step>> make_plan(const ModelFile& model, const Options& options) {
  const bool tied = model.find_tensor("output.weight") == nullptr;
  const DType output = options.output.value_or(default_output(options.format));
  const DType embedding = options.embedding.value_or(tied ? output : options.format);
  std::vector<Step> steps;
  for (const GgufTensor& tensor : model.tensors()) {
    const auto from = formats::block_of(tensor.dtype);
    if (!from) return Error(ErrorCode::unsupported, "its format is not one of tessera's", std::string(tensor.name));
    const std::uint64_t values = tensor.bytes / from->bytes * from->values;
    // Position embeddings are added as they are, not multiplied: they are small, and every token's error would show.
    const bool matrix = tensor.n_dims == 2 && ends_with_weight(tensor.name) && tensor.name != "position_embd.weight";
    DType wanted = options.format, to = tensor.dtype;
    std::string note;
    if (matrix) {
      if (tensor.name == "token_embd.weight") wanted = embedding;
      if (tensor.name == "output.weight") wanted = output;
      to = fitting(wanted, tensor.dims[0]);
      if (to != wanted)
        note = fmt::format("{} instead of {}: a row of {} values is not whole blocks", to_string(to), to_string(wanted),
                           tensor.dims[0]);
    } else if (tensor.n_dims == 1 || options.format == DType::f32) {
      to = DType::f32;
    }
    if (is_quantised(tensor.dtype) && to != tensor.dtype && !options.requantize) {
      return Error(ErrorCode::invalid_argument,
                   fmt::format("is {} already, and quantising twice loses more than quantising once: start from an "
                               "F32, F16 or BF16 model, or pass --requantize",
                               to_string(tensor.dtype)),
                   std::string(tensor.name));
    }
    const auto block = *formats::block_of(to);
    steps.push_back({&tensor, to, values, values / block.values * block.bytes, std::move(note)});
  }
  return steps;
}

}  // namespace tessera::quantize
