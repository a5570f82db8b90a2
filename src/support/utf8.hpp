// Well-formed UTF-8, one sequence at a time (Unicode 15, table 3-7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera::detail {

enum class Utf8Kind : std::uint8_t { valid, invalid, incomplete };

struct Utf8Step {
  std::size_t size;  // bytes of the character, or of the maximal part of one that cannot be completed; at least 1
  Utf8Kind kind;     // incomplete: well-formed so far, and the text ends
};

// The sequence at the start of `text`, which is not empty.
[[nodiscard]] constexpr Utf8Step utf8_step(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, Utf8Kind::valid};
  if (lead < 0xC2 || lead > 0xF4) return {1, Utf8Kind::invalid};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {i, Utf8Kind::incomplete};
    const unsigned next = byte(i);
    if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xBF)) return {i, Utf8Kind::invalid};
  }
  return {size, Utf8Kind::valid};
}

}  // namespace tessera::detail
