// The options of the sampling stages that have several; chain.hpp says what each stage does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <tessera/core/token.hpp>

namespace tessera::sampling {

inline constexpr std::size_t kWholeHistory = std::numeric_limits<std::size_t>::max();

// Which tokens of the history a penalty counts.
enum class Counted : std::int32_t {
  answer = 0,    // those of the answer, as OpenAI counts: all since Sampler::begin_answer(), of which generations tell the sampler
  sequence = 1,  // those of the prompt too, as llama.cpp and transformers count
};

struct PenaltyOptions {
  float repetition = 1.0f;   // > 0; 1 = none
  float frequency = 0.0f;    // finite; 0 = none
  float presence = 0.0f;     // finite; 0 = none
  std::size_t last_n = kWholeHistory;  // how many of the counted tokens, the last ones; kWholeHistory = all of them
  Counted counted = Counted::answer;
};

struct TokenBias {
  Token token;
  float bias;  // -inf: never; +inf: always (of several such, each equally likely)
};

struct DynamicTemperatureOptions {
  float low = 0.5f;       // the temperature of a certain distribution (entropy 0); >= 0
  float high = 1.5f;      // that of a uniform one; >= low
  float exponent = 1.0f;  // shapes the way between: (entropy / maximum entropy)^exponent; > 0
};

struct XtcOptions {
  float probability = 0.5f;  // how often it acts, in [0, 1]; decided by Context::uniform(0)
  float threshold = 0.1f;    // in (0, 1]; above 0.5 it never acts, as no two tokens can reach it
  std::size_t min_keep = 1;
};

struct DryOptions {
  float multiplier = 0.8f;                 // >= 0; 0 = off
  float base = 1.75f;                      // >= 1
  std::size_t allowed_length = 2;          // repeats up to this length are free
  std::size_t last_n = kWholeHistory;      // how many of the counted tokens are searched, the last ones
  std::span<const Token> breakers = {};    // tokens that a repeat never reaches across (line breaks, quotes); copied
  Counted counted = Counted::answer;
};

struct MirostatOptions {
  float tau = 5.0f;  // the target surprise in bits; > 0
  float eta = 0.1f;  // the learning rate; > 0
};

}  // namespace tessera::sampling
