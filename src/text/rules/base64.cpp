#include "text/rules/base64.hpp"

#include <cstdint>

namespace tessera::detail {

namespace {

constexpr std::string_view kDigits64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::optional<std::string> base64_bytes(std::string_view text) {
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
    const std::size_t digit = kDigits64.find(c);
    if (digit == kDigits64.npos) return std::nullopt;
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

std::string base64_text(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) out += at + i <= bytes.size() ? kDigits64[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

}  // namespace tessera::detail
