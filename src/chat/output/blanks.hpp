// White space that is skipped in models' output, and a limit for the length of names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tessera::chat_output {

inline constexpr std::string_view kBlanks = " \t\r\n";
inline constexpr std::size_t kLongestName = 512;  // limit for a tool's name, in bytes

inline std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace tessera::chat_output
