// Names from a file, as they may stand in an error message: one line, of bounded length, without control characters.
#pragma once

#include <string>
#include <string_view>

namespace tessera::detail {

inline std::string printable(std::string_view text, std::size_t limit = 80) {
  std::string out;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  if (text.size() > limit) out += "...";
  return out;
}

}  // namespace tessera::detail
