// Makes texts safe for a terminal, also texts from files.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tessera::tool {

// Returns the text with its control characters (C1, U+0080 to U+009F, included) written as \xNN, so that no file's text can control a
// terminal. Line ends and tabs are written so too, except with Lines::kept.
enum class Lines { escaped, kept };
inline std::string shown(std::string_view text, Lines lines = Lines::escaped) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    if (lines == Lines::kept && (c == '\n' || c == '\t')) out += c;
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) out += fmt::format("\\x{:02x}", next), ++i;
    else out += c;
  }
  return out;
}

// Writes a line to standard error. A failure to write is ignored.
inline void complain(std::string_view program, std::string_view message) {
  const std::string line = fmt::format("{}: {}\n", program, shown(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace tessera::tool
