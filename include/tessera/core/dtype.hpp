// The number formats of weights, activations and KV caches. Values are ggml's type ids where GGUF has one (GGUF
// specification, ggml_type), so that a tensor's type in a file is its DType.
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
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30,
  int8 = 0x100,       // KV only: symmetric, one f32 scale per token and head
  automatic = 0xffff  // an option's "choose for me"
};

// "F32", "Q4_K", ...: the names that people know from file names. "?" for a value that is not listed above.
[[nodiscard]] constexpr std::string_view to_string(DType type) noexcept {
  switch (type) {
    case DType::f32: return "F32";
    case DType::f16: return "F16";
    case DType::q4_0: return "Q4_0";
    case DType::q4_1: return "Q4_1";
    case DType::q5_0: return "Q5_0";
    case DType::q5_1: return "Q5_1";
    case DType::q8_0: return "Q8_0";
    case DType::q4_k: return "Q4_K";
    case DType::q5_k: return "Q5_K";
    case DType::q6_k: return "Q6_K";
    case DType::bf16: return "BF16";
    case DType::int8: return "INT8";
    case DType::automatic: return "auto";
  }
  return "?";
}

}  // namespace tessera
