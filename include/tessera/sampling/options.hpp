// The options of sampling stages that have several of them. What each stage does: chain.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <tessera/core/token.hpp>

namespace tessera::sampling {

inline constexpr std::size_t kWholeHistory = std::numeric_limits<std::size_t>::max();

// Says which tokens of the history a penalty counts.
enum class Counted : std::int32_t {
  answer = 0,    // tokens of the answer, as OpenAI counts: all since Sampler::begin_answer(), which generations call
  sequence = 1,  // tokens of the prompt and of the answer, as llama.cpp and transformers count
};

struct PenaltyOptions {
  float repetition = 1.0f;   // > 0; 1 = none
  float frequency = 0.0f;    // finite; 0 = none
  float presence = 0.0f;     // finite; 0 = none
  std::size_t last_n = kWholeHistory;  // only the last n counted tokens matter; kWholeHistory = all
  Counted counted = Counted::answer;
};

struct TokenBias {
  Token token;
  float bias;  // -inf: never drawn; +inf: always (several tokens of +inf are equally likely)
};

struct DynamicTemperatureOptions {
  float low = 0.5f;       // temperature of a distribution of entropy 0; >= 0
  float high = 1.5f;      // temperature of the uniform distribution; >= low
  float exponent = 1.0f;  // shape of the curve between: (entropy / maximum entropy)^exponent; > 0
};

struct XtcOptions {
  float probability = 0.5f;  // chance that the stage acts on a draw, in [0, 1]; decided by Context::uniform(0)
  float threshold = 0.1f;    // a probability, in (0, 1]. Above 0.5 the stage never acts, because two tokens cannot both be so likely
  std::size_t min_keep = 1;  // if fewer candidates would remain, the stage does not act
};

struct DryOptions {
  float multiplier = 0.8f;                 // >= 0; 0 = off
  float base = 1.75f;                      // >= 1
  std::size_t allowed_length = 2;          // tokens; shorter repeats are not penalised
  std::size_t last_n = kWholeHistory;      // only the last n counted tokens are searched; kWholeHistory = all
  std::span<const Token> breakers = {};    // tokens that a repeat never crosses (line breaks, quotes); copied
  Counted counted = Counted::answer;
};

struct MirostatOptions {
  float tau = 5.0f;  // target surprise in bits; > 0
  float eta = 0.1f;  // learning rate; > 0
};

}  // namespace tessera::sampling
