#include "sampling/stages/logit_bias.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace tessera::sampling {

Result<LogitBias> LogitBias::make(std::span<const TokenBias> biases) noexcept {
  return tessera::detail::guard([&]() -> Result<LogitBias> {
    std::vector<TokenBias> sorted(biases.begin(), biases.end());
    std::sort(sorted.begin(), sorted.end(), [](const TokenBias& a, const TokenBias& b) {
      return a.token != b.token ? a.token < b.token : a.bias < b.bias;
    });
    LogitBias made;
    for (const TokenBias& entry : sorted) {
      if (!made.biases_.empty() && made.biases_.back().token == entry.token) {
        made.biases_.back().bias += entry.bias;
      } else {
        made.biases_.push_back(entry);
      }
    }
    for (const TokenBias& entry : made.biases_) {
      if (entry.token < 0 || entry.bias != entry.bias) {
        return tessera::detail::make_error(ErrorCode::invalid_argument, "logit bias: token {} with bias {}: {}",
                                           entry.token, entry.bias,
                                           entry.token < 0 ? "a token cannot be negative" : "the bias must be a number");
      }
    }
    return made;
  });
}

void LogitBias::operator()(Candidates& candidates, const Context&) const noexcept {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const auto slots = candidates.counts();  // [token]: index of its bias, counted from 1
  const auto in_vocabulary = [&](const TokenBias& entry) {
    return static_cast<std::size_t>(entry.token) < slots.size();
  };
  for (std::size_t i = 0; i < biases_.size() && in_vocabulary(biases_[i]); ++i) {
    slots[static_cast<std::size_t>(biases_[i].token)] = static_cast<std::uint32_t>(i + 1);
  }
  const auto tokens = candidates.tokens();
  const auto logits = candidates.change_logits();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const std::uint32_t slot = slots[static_cast<std::uint32_t>(tokens[i])];
    if (slot == 0) continue;
    const float bias = biases_[slot - 1].bias;
    // An infinite bias replaces the logit, because the sum inf - inf would be NaN.
    logits[i] = bias == infinite || bias == -infinite ? bias : logits[i] + bias;
  }
  for (std::size_t i = 0; i < biases_.size() && in_vocabulary(biases_[i]); ++i) {
    slots[static_cast<std::size_t>(biases_[i].token)] = 0;
  }
}

}  // namespace tessera::sampling
