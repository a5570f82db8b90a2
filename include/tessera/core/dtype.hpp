// The number formats of weights, activations and KV caches. A format that GGUF has too gets GGUF's number (ggml_type in the GGUF
// specification), so the type of a tensor in a GGUF file can be used as a DType without a table.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

enum class DType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  int8 = 0x101,       // KV only: rotated, symmetric, one f32 scale per token and head
  fp8 = 0x102,        // KV only: E4M3, one f32 scale per token and head
  int4 = 0x103,       // KV only: rotated; one f32 scale per token and head, and an 8-bit multiplier per 16 numbers
  k8v4 = 0x104,       // KV only: keys stored as int8, values stored as int4
  automatic = 0xffff  // as an option: the library chooses
};

// Returns the name that people know from file names: "F32", "Q4_K". "?" for a value that is not listed above.
[[nodiscard]] constexpr std::string_view to_string(DType type) noexcept {
  switch (type) {
    case DType::f32: return "F32";
    case DType::f16: return "F16";
    case DType::q4_0: return "Q4_0";
    case DType::q4_1: return "Q4_1";
    case DType::q5_0: return "Q5_0";
    case DType::q5_1: return "Q5_1";
    case DType::q8_0: return "Q8_0";
    case DType::q2_k: return "Q2_K";
    case DType::q3_k: return "Q3_K";
    case DType::q4_k: return "Q4_K";
    case DType::q5_k: return "Q5_K";
    case DType::q6_k: return "Q6_K";
    case DType::iq2_xxs: return "IQ2_XXS";
    case DType::iq2_xs: return "IQ2_XS";
    case DType::iq3_xxs: return "IQ3_XXS";
    case DType::iq1_s: return "IQ1_S";
    case DType::iq4_nl: return "IQ4_NL";
    case DType::iq3_s: return "IQ3_S";
    case DType::iq2_s: return "IQ2_S";
    case DType::iq4_xs: return "IQ4_XS";
    case DType::iq1_m: return "IQ1_M";
    case DType::bf16: return "BF16";
    case DType::tq1_0: return "TQ1_0";
    case DType::tq2_0: return "TQ2_0";
    case DType::mxfp4: return "MXFP4";
    case DType::nvfp4: return "NVFP4";
    case DType::int8: return "INT8";
    case DType::fp8: return "FP8";
    case DType::int4: return "INT4";
    case DType::k8v4: return "K8V4";
    case DType::automatic: return "auto";
  }
  return "?";
}

}  // namespace tessera
