#include "text/rules/base64.hpp"

#include <cstdint>

namespace tessera::detail {

std::optional<std::string> base64_bytes(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  std::size_t count = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == digits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (++count % 4 != 0) continue;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(static_cast<unsigned char>(bits >> shift));
    bits = 0;
  }
  if (count % 4 == 3) {
    out += static_cast<char>(static_cast<unsigned char>(bits >> 10));
    out += static_cast<char>(static_cast<unsigned char>(bits >> 2));
  } else if (count % 4 == 2) {
    out += static_cast<char>(static_cast<unsigned char>(bits >> 4));
  }
  return out;
}

}  // namespace tessera::detail
