// The formats of `format`, as patterns.
#pragma once

#include <string_view>

namespace tessera::grammar {

struct Format {
  std::string_view name;
  std::string_view pattern;  // pattern of the whole string; empty: a known format that no pattern can say
};

// Returns a format; nullptr if JSON Schema does not define one of that name.
[[nodiscard]] const Format* find_format(std::string_view name) noexcept;

}  // namespace tessera::grammar
