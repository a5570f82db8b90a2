// Finds the tokens with the highest logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/token.hpp>

namespace tessera::detail {

struct LikelyToken {
  Token token = 0;
  double share = 0.0;  // probability in the softmax of the logits
};

// Replaces the content of `into` by at most n tokens, likeliest first. Leaves out impossible tokens (-inf).
inline void find_likeliest(std::span<const float> logits, std::size_t n, std::vector<LikelyToken>& into) {
  into.clear();
  const auto is_before = [](const LikelyToken& a, const LikelyToken& b) { return a.share > b.share; };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const LikelyToken one{.token = static_cast<Token>(i), .share = static_cast<double>(logits[i])};  // share holds the logit at first
    if (!(one.share > -1e30) || (into.size() == n && !is_before(one, into.back()))) continue;
    into.insert(std::ranges::upper_bound(into, one, is_before), one);
    if (into.size() > n) into.pop_back();
  }
  if (into.empty()) return;
  const double largest = into.front().share;
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  for (LikelyToken& one : into) one.share = std::exp(one.share - largest) / sum;
}

}  // namespace tessera::detail
