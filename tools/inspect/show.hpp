// How tables write sizes, and texts that come from a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tessera::inspect {

inline std::string size_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < std::uint64_t{1} << 20) return fmt::format("{:.1f} KiB", value / 0x1p10);
  if (bytes < std::uint64_t{1} << 30) return fmt::format("{:.1f} MiB", value / 0x1p20);
  if (bytes < std::uint64_t{100} << 30) return fmt::format("{:.2f} GiB", value / 0x1p30);
  if (bytes < std::uint64_t{1} << 40) return fmt::format("{:.1f} GiB", value / 0x1p30);
  return fmt::format("{:.2f} TiB", value / 0x1p40);
}

// Control characters as \xNN, so that no file commands a terminal; line ends and tabs too unless `lines` are kept.
enum class Lines { escaped, kept };
inline std::string shown(std::string_view text, Lines lines = Lines::escaped) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (lines == Lines::kept && (c == '\n' || c == '\t')) out += c;
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else out += c;
  }
  return out;
}

}  // namespace tessera::inspect
