// White space around the texts that models write, and the longest name in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tessera::chat_output {

inline constexpr std::string_view kBlanks = " \t\r\n";
inline constexpr std::size_t kLongestName = 512;  // bytes of a tool's name

inline std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace tessera::chat_output
