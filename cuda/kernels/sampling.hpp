// Draws a token without a sort: arguments of the kernel in sampling.cu, and the arithmetic that needs no threads. The drawn token is the
// one that Sampler (src/sampling) draws.
//
// The candidates that the steps leave are not stored as a list. Each step either changes all logits in the same way, or keeps the
// candidates from some key on, in the order "higher logit, then lower token id". So a few numbers (Cuts) tell for any token whether it is
// still a candidate, and what its logit is now. A threshold is found digit by digit, from histograms of the keys. Masses (probabilities
// before the division by their total) are integers, so their sums do not depend on the order of additions.
#pragma once

#include <cstdint>

#include <tessera/core/token.hpp>

#include "backend/sample_row.hpp"
#include "core/math_inline.hpp"

namespace tessera::cuda {

// The most threads of a block, which draws one row. A block may have any multiple of 32 from 64 on; the result does not depend on it.
inline constexpr unsigned kSampleThreads = 1024;

enum class SampleStatus : std::uint32_t {
  ok = 0,
  nan = 1,      // the logit of SampleResult::token is NaN; it is the first token with such a logit
  nothing = 2,  // every logit is -inf
};

struct SampleResult {
  Token token;
  SampleStatus status;
};

// Arguments of sample_tokens. Grid (draws, 1, 1), no dynamic shared memory.
struct SampleArgs {
  const float* logits;             // [rows, vocab]
  const backend::SampleRow* rows;  // [draws]; SampleRow::row is an index into the rows of `logits`
  SampleResult* results;           // [draws]
  std::uint32_t vocab;             // at least 1
};

inline constexpr float kInfinity = __builtin_inff();

// Returns a number by which candidates are ordered: the better candidate has the higher key. The order is that of
// src/sampling/candidates.cpp.
constexpr std::uint64_t sample_key(float logit, std::uint32_t token) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, logit + 0.0f);  // the two zeros are alike
  const std::uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return (std::uint64_t{ordered} << 32) | static_cast<std::uint32_t>(~token);
}

constexpr std::uint32_t key_token(std::uint64_t key) { return ~static_cast<std::uint32_t>(key); }

constexpr float key_logit(std::uint64_t key) {
  const auto ordered = static_cast<std::uint32_t>(key >> 32);
  return __builtin_bit_cast(float, (ordered & 0x80000000u) != 0 ? ordered & 0x7fffffffu : ~ordered);
}

// Digits of a key, for histograms: a key is cut into digits of kDigitBits bits, from the highest bits down. So many bits make it likely
// that common logits differ in the first digit already, so few threads add to the same entry of the histogram.
inline constexpr int kDigitBits = 11;
inline constexpr std::uint32_t kDigits = 1u << kDigitBits;
struct KeyDigit {
  int shift;
  std::uint32_t mask;
};
inline constexpr int kKeyDigits = 6;
inline constexpr int kLogitDigits = 3;  // the first digits are the logit's, the others the token's
constexpr KeyDigit key_digit(int i) {
  switch (i) {
    case 0: return {53, 0x7ff};
    case 1: return {42, 0x7ff};
    case 2: return {32, 0x3ff};
    case 3: return {21, 0x7ff};
    case 4: return {10, 0x7ff};
    default: return {0, 0x3ff};
  }
}
// Returns whether this digit, and the digits between it and the logit, are the same (all ones) in all tokens of the vocabulary.
constexpr bool is_same_for_all(KeyDigit digit, std::uint32_t vocab) {
  return digit.shift < 32 && (vocab - 1) >> digit.shift == 0;
}

// Masses are probabilities stored as integers: a mass of 1 is the integer 2^b. Returns b for a vocabulary of `vocab` tokens: the largest b
// for which the sum over all tokens fits 64 bits. For 128k tokens b is 47, and all roundings together are less than 5e-10 of the total.
constexpr int mass_bits(std::uint32_t vocab) {
  int bits = 64;
  for (; vocab > 0; vocab >>= 1) --bits;
  return bits;
}

// Returns value * 2^bits, rounded half up; 0 <= value <= 1.
constexpr std::uint64_t fixed_point(float value, int bits) {
  const std::uint32_t raw = __builtin_bit_cast(std::uint32_t, value);
  const int shift = static_cast<int>(raw >> 23) - 127 - 23 + bits;
  const std::uint64_t mantissa = (raw & 0x7fffffu) | 0x800000u;
  if (raw >> 23 == 0 || shift < -24) return 0;
  if (shift >= 0) return mantissa << shift;
  return (mantissa + (std::uint64_t{1} << (-shift - 1))) >> -shift;
}

// Returns the mass exp(logit - top) as an integer. If the highest logit is +inf, all tokens of logit +inf are equally likely.
constexpr std::uint64_t sample_mass(float logit, float top, int bits) {
  if (top == kInfinity) return logit == kInfinity ? std::uint64_t{1} << bits : 0;
  return fixed_point(math::inlined::exp(logit - top), bits);
}

// Returns the target that top-p's running sum of masses must pass, from the best token down, so that it reaches p * total.
constexpr std::uint64_t share_target(float p, std::uint64_t total) {
  const double wanted = static_cast<double>(p) * static_cast<double>(total);
  const auto below = static_cast<std::uint64_t>(wanted);
  const std::uint64_t reached = below + (static_cast<double>(below) < wanted ? 1 : 0);
  return (reached < total ? reached : total) - 1;
}

// Returns the target that the draw's running sum of masses must pass.
constexpr std::uint64_t draw_target(double uniform, std::uint64_t total) {
  const auto target = static_cast<std::uint64_t>(uniform * static_cast<double>(total));
  return target < total ? target : total - 1;
}

// The effect of one step: it scaled the logits, or (if `temperature` is 0) it removed the candidates below a key.
struct Cut {
  std::uint64_t threshold;
  float shift;
  float temperature;
};
struct Cuts {
  Cut list[kMaxSampleSteps];
  std::uint32_t size;
};

// Returns whether the token is still a candidate after the steps so far. `logit` goes in and out: in, the model's logit; out, the logit as
// the steps have changed it.
constexpr bool keeps(const Cuts& cuts, std::uint32_t token, float& logit) {
  if (logit == -kInfinity) return false;
  for (std::uint32_t i = 0; i < cuts.size; ++i) {
    const Cut& cut = cuts.list[i];
    if (cut.temperature != 0.0f) {
      logit = (logit - cut.shift) / cut.temperature;
    } else if (sample_key(logit, token) < cut.threshold) {
      return false;
    }
  }
  return true;
}

// Returns the cut that divides logits by the temperature, as the stage Temperature does. `top` is the best logit. If top / temperature
// would overflow, `top` is subtracted from all logits first: overflow would make different logits equal.
constexpr Cut scaling(float top, float temperature) {
  const auto finite = [](float value) { return value > -kInfinity && value < kInfinity; };
  return {.threshold = 0,
          .shift = finite(top) && !finite(top / temperature) ? top : 0.0f,
          .temperature = temperature};
}

}  // namespace tessera::cuda
