// The value of options that name an adapter: FILE or FILE:SCALE.
#pragma once

#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <tessera/extend/adapters/merged_adapter.hpp>

#include "system/program.hpp"

namespace tessera::tool {

// Parses FILE or FILE:SCALE. If a file has the whole text as its name, the text is FILE. If not, and a number stands after the last colon,
// the number is the scale.
inline MergedAdapter parse_adapter(std::string_view text) {
  std::error_code ignored;
  const std::size_t colon = text.rfind(':');
  MergedAdapter whole{.path = path_of(text)};
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size() || std::filesystem::exists(whole.path, ignored)) return whole;
  float scale = 0.0f;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data() + colon + 1, end, scale);
  if (error != std::errc() || behind != end) return whole;  // a scale of nan or inf is refused by the library
  return {.path = path_of(text.substr(0, colon)), .scale = scale};
}

}  // namespace tessera::tool
