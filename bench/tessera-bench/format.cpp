#include "format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include <tessera/formats/rows.hpp>

namespace tessera::bench {

namespace {

constexpr std::uint32_t kFileTypeQ4KM = 15, kFileTypeQ5KM = 17;

// llama.cpp's use_more_bits(): the first and last eighth of the layers, and every third between.
bool gets_more_bits(std::uint32_t layer, std::uint32_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

// What takes the place of a format whose blocks do not fit a row.
DType fitting(DType wanted, std::uint64_t row) {
  const auto fits = [&](DType type) { return row % formats::block_of(type)->values == 0; };
  if (fits(wanted)) return wanted;
  const DType smaller = wanted == DType::q4_k ? DType::q5_0 : wanted == DType::q5_k ? DType::q5_1 : DType::q8_0;
  return fits(smaller) ? smaller : DType::f16;
}

}  // namespace

std::optional<Format> parse_format(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  if (upper == "Q4_K_M") return Format{upper, DType::q4_k, true};
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0,
                           DType::q5_1, DType::q4_k, DType::q5_k, DType::q6_k}) {
    if (upper == to_string(type)) return Format{upper, type, false};
  }
  return std::nullopt;
}

std::string format_of(const ModelFile& file) {
  if (const auto number = file.metadata().unsigned_integer("general.file_type")) {
    if (*number == kFileTypeQ4KM) return "Q4_K_M";
    if (*number == kFileTypeQ5KM) return "Q5_K_M";
  }
  std::map<DType, std::uint64_t> bytes;
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.n_dims > 1) bytes[tensor.dtype] += tensor.bytes;
  }
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "?" : std::string(to_string(most->first));
}

std::uint32_t file_type(const Format& format) noexcept {
  if (format.mix) return kFileTypeQ4KM;
  switch (format.type) {
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

DType matrix_type(const Format& format, Role role, bool output, std::uint32_t layer, std::uint32_t layers,
                  std::uint64_t row) noexcept {
  DType type = format.type;
  const bool fine = formats::block_of(type)->values == 1 || type == DType::q8_0;
  if (output && !fine) type = DType::q6_k;
  if (format.mix) {
    const bool matters = role == Role::attn_v || role == Role::ffn_down;
    if (matters && gets_more_bits(layer, layers)) type = DType::q6_k;
    if (role == Role::attn_qkv) type = DType::q5_k;
  }
  return fitting(type, row);
}

}  // namespace tessera::bench
