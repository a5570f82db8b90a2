// The values of JSON Schema's `format` keyword, as patterns.
#pragma once

#include <string_view>

namespace tessera::grammar {

struct Format {
  std::string_view name;
  std::string_view pattern;  // a pattern for the whole string; empty: the format is known, but cannot be written as a pattern
};

// Returns the format of this name; nullptr if JSON Schema does not define one.
[[nodiscard]] const Format* find_format(std::string_view name) noexcept;

}  // namespace tessera::grammar
