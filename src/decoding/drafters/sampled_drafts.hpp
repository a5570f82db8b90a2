// Drafts drawn from a drafter's logits with the request's own sampler, which is at the end what it was before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <tessera/extend/decoding/drafter.hpp>

namespace tessera::detail {

class SampledDrafts {
 public:
  // `vocab`: the target's. A drafter's logits may have a few more or less, of tokens that are none.
  SampledDrafts(const DraftContext& context, std::size_t vocab, std::vector<float>& room) noexcept
      : sampler_(*context.sampler), position_(context.position), vocab_(vocab), room_(room) {}
  SampledDrafts(const SampledDrafts&) = delete;
  SampledDrafts& operator=(const SampledDrafts&) = delete;
  ~SampledDrafts() { (void)sampler_.rollback(accepted_); }

  // The next draft. `history` ends with the drafts so far.
  Result<Token> draw(std::span<const float> logits, std::span<const Token> history) {
    if (logits.size() < vocab_) {
      room_.assign(vocab_, -std::numeric_limits<float>::infinity());
      std::ranges::copy(logits, room_.begin());
      logits = room_;
    }
    auto token = sampler_.sample(logits.first(vocab_), history, position_);
    if (!token) return token;
    if (auto accepted = sampler_.accept(*token); !accepted) return std::move(accepted).error();
    ++accepted_;
    ++position_;
    return token;
  }

 private:
  Sampler& sampler_;
  std::uint64_t position_;
  std::size_t vocab_;
  std::vector<float>& room_;
  std::size_t accepted_ = 0;
};

}  // namespace tessera::detail
