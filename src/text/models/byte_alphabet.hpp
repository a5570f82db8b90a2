// GPT-2's alphabet for bytes: each byte is written as a printable character, so that a vocabulary of byte strings is readable text (GPT-2
// encoder.py, bytes_to_unicode). Printable characters of Latin-1 stand for their own byte. The other 68 bytes are written as U+0100 and
// following.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::detail {

[[nodiscard]] constexpr bool is_printable_latin1(unsigned byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

inline constexpr unsigned kAlphabetEnd = 0x100 + 68;

// The code point that each byte is written as.
inline constexpr std::array<std::uint16_t, 256> kByteToChar = [] {
  std::array<std::uint16_t, 256> map{};
  std::uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    map[byte] = is_printable_latin1(byte) ? static_cast<std::uint16_t>(byte) : next++;
  }
  return map;
}();

// The byte that each code point stands for; -1 if it is not in the alphabet.
inline constexpr std::array<std::int16_t, kAlphabetEnd> kCharToByte = [] {
  std::array<std::int16_t, kAlphabetEnd> map{};
  for (auto& byte : map) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) map[kByteToChar[byte]] = static_cast<std::int16_t>(byte);
  return map;
}();

// Appends `bytes` as they are written in the alphabet. Each byte becomes at most two bytes of UTF-8.
inline void spell_bytes(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const unsigned code = kByteToChar[static_cast<unsigned char>(c)];
    if (code < 0x80) {
      out.push_back(static_cast<char>(code));
    } else {
      out.push_back(static_cast<char>(0xC0 | (code >> 6)));
      out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    }
  }
}

// Writes to `out` the bytes for which the characters of `text` stand. Returns how many there are; nullopt if a character is not in the
// alphabet. Precondition: `out` has room for text.size() bytes.
[[nodiscard]] inline std::optional<std::size_t> read_bytes(std::string_view text, char* out) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = static_cast<unsigned char>(text[i]);
    if (code >= 0x80) {
      if (code < 0xC2 || code > 0xC5 || i + 1 == text.size()) return std::nullopt;
      code = (code & 0x1F) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F);
    }
    if (code >= kAlphabetEnd || kCharToByte[code] < 0) return std::nullopt;
    out[count++] = static_cast<char>(kCharToByte[code]);
  }
  return count;
}

}  // namespace tessera::detail
