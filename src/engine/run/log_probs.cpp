#include "engine/run/log_probs.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/math.hpp"

namespace tessera::detail {

Result<double> log_sum_exp(std::span<const float> logits) noexcept {
  float maximum = -std::numeric_limits<float>::infinity();
  for (const float logit : logits) {
    if (logit != logit) return make_error(ErrorCode::numeric, "the logits hold a NaN");
    maximum = std::max(maximum, logit);
  }
  if (maximum == -std::numeric_limits<float>::infinity() || maximum == std::numeric_limits<float>::infinity()) {
    return make_error(ErrorCode::numeric, "the largest logit is {}: no probability can be given", maximum);
  }
  double sum = 0.0;
  for (const float logit : logits) sum += math::exp(static_cast<double>(logit) - static_cast<double>(maximum));
  return static_cast<double>(maximum) + math::log(sum);
}

void top_log_probs(std::span<const float> logits, double log_sum, std::size_t n, std::vector<TokenLogprob>& top) {
  const auto better = [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
  };
  n = std::min(n, logits.size());
  top.clear();
  top.reserve(n + 1);
  // `top` is a heap of the n best tokens so far. Its front is the worst of them.
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const TokenLogprob candidate{static_cast<Token>(i), logits[i]};
    if (top.size() == n && (n == 0 || !better(candidate, top.front()))) continue;
    top.push_back(candidate);
    std::push_heap(top.begin(), top.end(), better);
    if (top.size() <= n) continue;
    std::pop_heap(top.begin(), top.end(), better);
    top.pop_back();
  }
  std::sort_heap(top.begin(), top.end(), better);
  for (TokenLogprob& entry : top) entry.logprob = static_cast<float>(static_cast<double>(entry.logprob) - log_sum);
}

Status add_log_probs(std::span<const float> logits, std::size_t n, Piece& piece) {
  TESSERA_TRY(const double log_sum, log_sum_exp(logits));
  piece.logprob = static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(piece.token)]) - log_sum);
  top_log_probs(logits, log_sum, n, piece.top);
  return {};
}

}  // namespace tessera::detail
