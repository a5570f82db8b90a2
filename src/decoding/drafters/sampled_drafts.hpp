// Draws drafts from a drafter's logits with the request's own sampler. The destructor undoes the sampler's changes.
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
  // `vocab` is the size of the target's vocabulary. The number of the drafter's logits may differ from it, because models pad their
  // vocabularies.
  SampledDrafts(const DraftContext& context, std::size_t vocab, std::vector<float>& room) noexcept
      : sampler_(*context.sampler), position_(context.position), vocab_(vocab), room_(room) {}
  SampledDrafts(const SampledDrafts&) = delete;
  SampledDrafts& operator=(const SampledDrafts&) = delete;
  ~SampledDrafts() { (void)sampler_.rollback(accepted_); }

  // Draws and returns the next draft. `history` is the sequence followed by all drafts so far.
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
