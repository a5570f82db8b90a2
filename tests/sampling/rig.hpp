// What the tests of samplers share: memory for candidates, random logits, and the naive view of a distribution.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <tessera/sampling/chain.hpp>

#include "sampling/draw.hpp"
#include "sampling/stages/dry.hpp"
#include "sampling/stages/greedy.hpp"
#include "sampling/stages/logit_bias.hpp"
#include "sampling/stages/min_p.hpp"
#include "sampling/stages/mirostat.hpp"
#include "sampling/stages/penalties.hpp"
#include "sampling/stages/temperature.hpp"
#include "sampling/stages/top_k.hpp"
#include "sampling/stages/top_n_sigma.hpp"
#include "sampling/stages/top_p.hpp"
#include "sampling/stages/typical_p.hpp"
#include "sampling/stages/xtc.hpp"
#include "sampling/token_list.hpp"

namespace tessera::tests {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Candidates over every finite logit, as a sampler makes them.
struct Rig {
  explicit Rig(const std::vector<float>& logits)
      : tokens(logits.size()), values(logits.size()), weights(logits.size()), keys(logits.size()), counts(logits.size()) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] == -kInf) continue;
      tokens[size] = static_cast<Token>(i);
      values[size++] = logits[i];
    }
    candidates.emplace_back(sampling::Candidates::Workspace{tokens, values, weights, keys, counts}, size);
  }

  template <class Stage>
  std::vector<sampling::Candidate> apply(Stage&& stage, const sampling::Context& context = {}) {
    (void)stage(candidates[0], context);
    return rows();
  }

  std::vector<sampling::Candidate> rows() const {
    const auto view = candidates[0].view();
    return {view.begin(), view.end()};
  }

  std::vector<Token> tokens;
  std::vector<float> values, weights;
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> counts;
  std::vector<sampling::Candidates> candidates;
};

inline std::vector<Token> tokens_of(const std::vector<sampling::Candidate>& candidates) {
  std::vector<Token> tokens;
  for (const auto& candidate : candidates) tokens.push_back(candidate.token);
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

// Several kinds: bell-shaped, with many ties, with -inf, flat, extreme.
inline std::vector<float> random_logits(std::size_t n, int kind, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto unit = [&] { return static_cast<float>(random() >> 8) * 0x1p-24f; };
  std::vector<float> logits(n);
  for (float& logit : logits) {
    const float bell = (unit() + unit() + unit() + unit() - 2.0f) * 6.0f;
    switch (kind % 5) {
      case 0: logit = bell; break;
      case 1: logit = std::round(bell); break;
      case 2: logit = unit() < 0.5f ? -kInf : bell; break;
      case 3: logit = bell * 1e-3f; break;
      default: logit = bell * 1e3f; break;
    }
  }
  if (n > 0 && kind % 5 == 2) logits[0] = 1.0f;
  return logits;
}

struct Naive {
  Token token;
  double logit;
  double p;
};

// Every finite logit with its probability, best first (ties: lower token id), all in double.
inline std::vector<Naive> naive(const std::vector<float>& logits) {
  std::vector<Naive> all;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != -kInf) all.push_back({static_cast<Token>(i), static_cast<double>(logits[i]), 0.0});
  }
  std::stable_sort(all.begin(), all.end(), [](const Naive& a, const Naive& b) { return a.logit > b.logit; });
  double sum = 0;
  for (const Naive& entry : all) sum += std::exp(entry.logit - all[0].logit);
  for (Naive& entry : all) entry.p = std::exp(entry.logit - all[0].logit) / sum;
  return all;
}

inline std::vector<Token> first_tokens(const std::vector<Naive>& all, std::size_t n) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < std::min(n, all.size()); ++i) tokens.push_back(all[i].token);
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace tessera::tests
