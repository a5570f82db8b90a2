// Writes sizes in tables, and texts that come from a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "terminal_text.hpp"

namespace tessera::inspect {

inline std::string size_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < std::uint64_t{1} << 20) return fmt::format("{:.1f} KiB", value / 0x1p10);
  if (bytes < std::uint64_t{1} << 30) return fmt::format("{:.1f} MiB", value / 0x1p20);
  if (bytes < std::uint64_t{100} << 30) return fmt::format("{:.2f} GiB", value / 0x1p30);
  if (bytes < std::uint64_t{1} << 40) return fmt::format("{:.1f} GiB", value / 0x1p30);
  return fmt::format("{:.2f} TiB", value / 0x1p40);
}

using tool::Lines;
using tool::shown;

}  // namespace tessera::inspect
