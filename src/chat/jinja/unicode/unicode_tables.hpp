// Tables of characters, made by make_unicode_tables.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::jinja::tables {

struct Range {
  std::uint32_t first, last;
};
// Each of the characters first, first + step, ..., last becomes itself + delta.
struct Mapping {
  std::uint32_t first, last, step;
  std::int32_t delta;
};
// A character that becomes several: the UTF-8 of those characters.
struct Several {
  std::uint32_t character;
  const char* text;
};

extern const Range printable[], alphabetic[], digit[], upper_case[], lower_case[];
extern const std::size_t printable_size, alphabetic_size, digit_size, upper_case_size,
    lower_case_size;
extern const Mapping to_upper[], to_lower[], to_title[];
extern const std::size_t to_upper_size, to_lower_size, to_title_size;
extern const Several to_upper_several[], to_lower_several[], to_title_several[];
extern const std::size_t to_upper_several_size, to_lower_several_size, to_title_several_size;

}  // namespace tessera::jinja::tables
