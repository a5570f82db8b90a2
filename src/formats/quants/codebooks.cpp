#include "formats/quants/codebooks.hpp"

namespace tessera::formats::detail {

namespace {

#include "formats/quants/codebooks.inc"

// Expands a grid, so that each value has one byte. `packed` has the grid's entries with `bits` bits for each value; level() maps these bits
// to the value.
template <class Entry, std::size_t n>
constexpr std::array<Entry, n> expanded(const std::uint16_t (&packed)[n], unsigned bits, auto level) {
  std::array<Entry, n> grid{};
  for (std::size_t e = 0; e < n; ++e) {
    for (std::size_t i = 0; i < sizeof(Entry); ++i) {
      grid[e] |= static_cast<Entry>(level((packed[e] >> (bits * i)) & ((1u << bits) - 1))) << (8 * i);
    }
  }
  return grid;
}

constexpr auto kEights = [](unsigned q) { return q == 0 ? 8u : q == 1 ? 25u : 43u; };
constexpr auto kFours = [](unsigned q) { return q == 7 ? 62u : 8 * q + 4; };

}  // namespace

constexpr std::array<std::uint64_t, 256> kGridIq2xxs = expanded<std::uint64_t>(kIq2xxs, 2, kEights);
constexpr std::array<std::uint64_t, 512> kGridIq2xs = expanded<std::uint64_t>(kIq2xs, 2, kEights);
constexpr std::array<std::uint64_t, 1024> kGridIq2s = expanded<std::uint64_t>(kIq2s, 2, kEights);
constexpr std::array<std::uint64_t, 2048> kGridIq1 =
    expanded<std::uint64_t>(kIq1, 2, [](unsigned q) { return 120 + 8 * q; });
constexpr std::array<std::uint32_t, 256> kGridIq3xxs = expanded<std::uint32_t>(kIq3xxs, 3, kFours);
constexpr std::array<std::uint32_t, 512> kGridIq3s =
    expanded<std::uint32_t>(kIq3s, 3, [](unsigned q) { return 2 * q + 1; });

constexpr std::array<std::uint64_t, 256> kSignMasks = [] {
  std::array<std::uint64_t, 256> masks{};
  for (std::size_t signs = 0; signs < 256; ++signs) {
    for (std::size_t i = 0; i < 8; ++i) masks[signs] |= (signs >> i & 1) != 0 ? std::uint64_t{255} << (8 * i) : 0;
  }
  return masks;
}();

}  // namespace tessera::formats::detail
