// The values of `format`, as patterns.
#pragma once

#include <string_view>

namespace tessera::grammar {

struct Format {
  std::string_view name;
  std::string_view pattern;  // of the whole string; empty: known, and no pattern can say it
};

// nullptr: a format that JSON Schema does not define.
[[nodiscard]] const Format* find_format(std::string_view name) noexcept;

}  // namespace tessera::grammar
