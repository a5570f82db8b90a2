// Names from a file, as they may stand in an error message: one line, of bounded length, without control characters.
#pragma once

#include <string>
#include <string_view>

namespace tessera::detail {

inline std::string printable(std::string_view text, std::size_t limit = 80) {
  std::string out;
  const std::string_view part = text.substr(0, limit);
  for (std::size_t i = 0; i < part.size(); ++i) {
    const auto byte = static_cast<unsigned char>(part[i]);
    const auto next = i + 1 < part.size() ? static_cast<unsigned char>(part[i + 1]) : 0u;
    const bool is_c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0;  // U+0080 to U+009F
    out += byte < 0x20 || byte == 0x7f || is_c1 ? '?' : part[i];
    if (is_c1) ++i;
  }
  if (text.size() > limit) out += "...";
  return out;
}

}  // namespace tessera::detail
