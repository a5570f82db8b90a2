// A set of bytes, as 256 bits.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>

namespace tessera::grammar {

struct ByteSet {
  std::array<std::uint64_t, 4> words{};

  [[nodiscard]] static constexpr ByteSet range(unsigned low, unsigned high) noexcept {
    ByteSet set;
    for (unsigned b = low; b <= high; ++b) set.add(b);
    return set;
  }
  [[nodiscard]] static constexpr ByteSet all() noexcept { return {{~0ull, ~0ull, ~0ull, ~0ull}}; }

  constexpr void add(unsigned byte) noexcept { words[byte >> 6] |= std::uint64_t{1} << (byte & 63); }
  [[nodiscard]] constexpr bool has(unsigned byte) const noexcept { return (words[byte >> 6] >> (byte & 63) & 1) != 0; }
  [[nodiscard]] constexpr bool empty() const noexcept { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  [[nodiscard]] constexpr unsigned count() const noexcept {
    unsigned n = 0;
    for (const auto word : words) n += static_cast<unsigned>(std::popcount(word));
    return n;
  }
  constexpr ByteSet& operator|=(const ByteSet& other) noexcept {
    for (unsigned i = 0; i < 4; ++i) words[i] |= other.words[i];
    return *this;
  }
  constexpr ByteSet& operator&=(const ByteSet& other) noexcept {
    for (unsigned i = 0; i < 4; ++i) words[i] &= other.words[i];
    return *this;
  }
  auto operator<=>(const ByteSet&) const noexcept = default;
};

// Calls f(byte) for each byte in the set, in ascending order.
template <class F>
constexpr void for_each_byte(const ByteSet& set, F&& f) {
  for (unsigned w = 0; w < 4; ++w) {
    for (std::uint64_t bits = set.words[w]; bits != 0; bits &= bits - 1) {
      f(w * 64 + static_cast<unsigned>(std::countr_zero(bits)));
    }
  }
}

}  // namespace tessera::grammar
