// Runs of UTF-8, and what stands for bytes that are none.
#pragma once

#include <cstddef>
#include <string_view>

#include "support/utf8.hpp"

namespace tessera::detail {

// How many bytes at the start of `text` are valid, or, if none is, how many are not (the sign says which).
struct Utf8Run {
  std::size_t size;
  bool valid;
};
[[nodiscard]] constexpr Utf8Run utf8_run(std::string_view text) noexcept {
  std::size_t at = 0;
  const bool valid = utf8_step(text).kind == Utf8Kind::valid;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    if ((step.kind == Utf8Kind::valid) != valid) break;
    at += step.size;
  }
  return {at, valid};
}

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace tessera::detail
