// GPT-2's alphabet: every byte has a printable character, so that a vocabulary of bytes can be written as text (GPT-2
// encoder.py, bytes_to_unicode). Printable Latin-1 stands for itself, the other 68 bytes for U+0100 onwards.
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

// Code point of each byte.
inline constexpr std::array<std::uint16_t, 256> kByteToChar = [] {
  std::array<std::uint16_t, 256> map{};
  std::uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    map[byte] = is_printable_latin1(byte) ? static_cast<std::uint16_t>(byte) : next++;
  }
  return map;
}();

// Byte of each code point; -1 outside the alphabet.
inline constexpr std::array<std::int16_t, kAlphabetEnd> kCharToByte = [] {
  std::array<std::int16_t, kAlphabetEnd> map{};
  for (auto& byte : map) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) map[kByteToChar[byte]] = static_cast<std::int16_t>(byte);
  return map;
}();

// Appends the alphabet's spelling of `bytes`; at most two bytes each.
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

// Writes the bytes that `text` spells to `out`, and returns their number; nullopt if a character is not in the alphabet. Precondition:
// `out` has room for text.size() bytes.
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
