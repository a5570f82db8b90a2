// A set of positions in a text, stored as one bit for each position. So that next() crosses gaps quickly, there is a second level: one
// bit for each word of 64 positions, which says whether the word contains any position of the set. A gap of a million positions takes
// about 250 steps.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace tessera::detail {

class PositionSet {
 public:
  // Make the set empty (clear) or full (fill). All positions are below `size`.
  void clear(std::uint32_t size) { reset(size, 0); }
  void fill(std::uint32_t size) { reset(size, ~std::uint64_t{0}); }

  [[nodiscard]] bool contains(std::uint32_t at) const noexcept { return (words_[at / 64] >> (at % 64) & 1) != 0; }
  void insert(std::uint32_t at) noexcept {
    words_[at / 64] |= bit(at);
    any_[at / 4096] |= bit(at / 64);
  }
  void erase(std::uint32_t at) noexcept {
    if ((words_[at / 64] &= ~bit(at)) == 0) any_[at / 4096] &= ~bit(at / 64);
  }

  // Returns the first position in the set that is not before `at`; `size` if there is none.
  [[nodiscard]] std::uint32_t next(std::uint32_t at) const noexcept {
    if (at >= size_) return size_;
    if (const std::uint64_t rest = words_[at / 64] >> (at % 64); rest != 0) return at + lowest(rest);
    std::uint32_t word = at / 64 + 1;
    if (word >= words_.size()) return size_;
    if (const std::uint64_t rest = any_[word / 64] >> (word % 64); rest != 0) {
      word += lowest(rest);
      return word * 64 + lowest(words_[word]);
    }
    for (std::uint32_t group = word / 64 + 1; group < any_.size(); ++group) {
      if (any_[group] == 0) continue;
      word = group * 64 + lowest(any_[group]);
      return word * 64 + lowest(words_[word]);
    }
    return size_;
  }

  // Returns the last position in the set that is not after `at`; kNone if there is none.
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  [[nodiscard]] std::uint32_t previous(std::uint32_t at) const noexcept {
    if (const std::uint64_t rest = words_[at / 64] << (63 - at % 64); rest != 0) return at - highest_gap(rest);
    std::uint32_t word = at / 64;
    if (word-- == 0) return kNone;
    if (const std::uint64_t rest = any_[word / 64] << (63 - word % 64); rest != 0) {
      return last_of(word - highest_gap(rest));
    }
    for (std::uint32_t group = word / 64; group-- > 0;) {
      if (any_[group] != 0) return last_of(group * 64 + 63 - highest_gap(any_[group]));
    }
    return kNone;
  }

  [[nodiscard]] std::uint32_t count() const noexcept {
    std::uint32_t sum = 0;
    for (const std::uint64_t word : words_) sum += static_cast<std::uint32_t>(std::popcount(word));
    return sum;
  }

 private:
  static std::uint64_t bit(std::uint32_t at) noexcept { return std::uint64_t{1} << (at % 64); }
  static std::uint32_t lowest(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(std::countr_zero(word)); }
  // Returns the number of zero bits above the highest set bit.
  static std::uint32_t highest_gap(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(std::countl_zero(word)); }
  [[nodiscard]] std::uint32_t last_of(std::uint32_t word) const noexcept { return word * 64 + 63 - highest_gap(words_[word]); }

  void reset(std::uint32_t size, std::uint64_t value) {
    size_ = size;
    assign(words_, (size + std::size_t{63}) / 64, value, size % 64);
    assign(any_, (words_.size() + 63) / 64, value, words_.size() % 64);
  }
  static void assign(std::vector<std::uint64_t>& words, std::size_t count, std::uint64_t value, std::size_t in_last) {
    words.clear();
    words.reserve(count);  // allocates exactly this size, if at all
    words.resize(count, value);
    if (in_last != 0) words.back() &= (std::uint64_t{1} << in_last) - 1;
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> any_;  // [word / 64], one bit for each word of the first level: the word is not 0
  std::uint32_t size_ = 0;
};

}  // namespace tessera::detail
