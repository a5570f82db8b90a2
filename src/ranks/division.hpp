// The division of consecutive things (columns, heads, tokens) among ranks: each rank has a range of the things, in the order of ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera::detail {

class Division {
 public:
  Division() = default;
  // Divides `total` things as evenly as possible, in whole pieces of `piece` things. Precondition: `piece` divides `total`.
  Division(std::uint64_t total, std::uint32_t ranks, std::uint64_t piece = 1) {
    const std::uint64_t pieces = total / piece;
    for (std::uint32_t rank = 0; rank <= ranks; ++rank) first_.push_back(pieces * rank / ranks * piece);
  }

  // Returns the division of `n` times as many things: each thing becomes `n` things of the same rank.
  [[nodiscard]] Division times(std::uint64_t n) const {
    Division more = *this;
    for (std::uint64_t& first : more.first_) first *= n;
    return more;
  }

  [[nodiscard]] bool empty() const noexcept { return first_.empty(); }
  [[nodiscard]] std::uint64_t first(std::uint32_t rank) const noexcept { return first_[rank]; }
  [[nodiscard]] std::uint64_t size(std::uint32_t rank) const noexcept { return first_[rank + 1] - first_[rank]; }
  [[nodiscard]] std::uint64_t total() const noexcept { return first_.back(); }
  [[nodiscard]] std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(first_.size() - 1); }
  // Returns the rank that has thing `i`. Precondition: i < total().
  [[nodiscard]] std::uint32_t rank_of(std::uint64_t i) const noexcept {
    return static_cast<std::uint32_t>(std::ranges::upper_bound(first_, i) - first_.begin() - 1);
  }

 private:
  std::vector<std::uint64_t> first_;  // [ranks + 1]
};

}  // namespace tessera::detail
