// Reads and writes UTF-8: finds well-formed sequences (Unicode 15, table 3-7), runs of them, and the places of malformed bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::detail {

enum class Utf8Kind : std::uint8_t { valid, invalid, incomplete };

struct Utf8Step {
  std::size_t size;  // bytes of the character, or of the longest beginning of a malformed one; at least 1
  Utf8Kind kind;     // incomplete: well-formed, but the text ends within the character
};

// Returns the kind and the size of the first sequence of `text`. Precondition: `text` is not empty.
[[nodiscard]] constexpr Utf8Step utf8_step(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, Utf8Kind::valid};
  if (lead < 0xC2 || lead > 0xF4) return {1, Utf8Kind::invalid};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range is narrower after some first bytes: this excludes overlong forms, surrogates and numbers beyond U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {i, Utf8Kind::incomplete};
    const unsigned next = byte(i);
    if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xBF)) return {i, Utf8Kind::invalid};
  }
  return {size, Utf8Kind::valid};
}

// The longest beginning of a text whose bytes all belong to valid sequences (valid = true), or all to malformed ones (false).
struct Utf8Run {
  std::size_t size;
  bool valid;
};
[[nodiscard]] constexpr Utf8Run utf8_run(std::string_view text) noexcept {
  std::size_t at = 0;
  const bool valid = utf8_step(text).kind == Utf8Kind::valid;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    if ((step.kind == Utf8Kind::valid) != valid) break;
    at += step.size;
  }
  return {at, valid};
}

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Appends a character as UTF-8. Half of a surrogate pair, or a number beyond U+10FFFF, becomes U+FFFD.
inline void append_utf8(std::string& out, std::uint32_t character) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if ((character >= 0xD800 && character < 0xE000) || character > 0x10FFFF) character = 0xFFFD;
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0 | character >> 6);
    put(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    put(0xE0 | character >> 12);
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  } else {
    put(0xF0 | character >> 18);
    put(0x80 | (character >> 12 & 0x3F));
    put(0x80 | (character >> 6 & 0x3F));
    put(0x80 | (character & 0x3F));
  }
}

}  // namespace tessera::detail
