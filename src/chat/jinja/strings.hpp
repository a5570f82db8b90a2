// Functions that filters and methods of strings share. Offsets and sizes are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "chat/jinja/evaluator.hpp"
#include "chat/jinja/unicode/unicode.hpp"

namespace tessera::jinja {

struct Extent {
  std::size_t begin, end;
};

enum class Ends : std::uint8_t { left = 1, right = 2, both = 3 };
// Returns the range of the text that remains when `characters` are removed at its ends. nullptr: removes white space.
[[nodiscard]] Extent stripped(std::string_view text, const std::string_view* characters, Ends ends);

// Implements Python's str.replace() with at most `times` replacements; all if `times` is negative.
[[nodiscard]] Value replaced(Evaluator& evaluator, const Text& text, const Text& old, const Text& fresh, std::int64_t times);

[[nodiscard]] Value part(Evaluator& evaluator, const Text& text, std::size_t begin, std::size_t end);

// Implement str.title(), which puts the first letter of each word into upper case, and str.capitalize(), which does so only with the
// text's first letter.
[[nodiscard]] Value titled(Evaluator& evaluator, const Text& text);
[[nodiscard]] Value capitalized(Evaluator& evaluator, const Text& text);
[[nodiscard]] Value in_case(Evaluator& evaluator, const Text& text, Case to);

// Returns the text with `left` copies of `with` before it and `right` copies after it.
[[nodiscard]] Value padded(Evaluator& evaluator, const Text& text, std::int64_t left, std::int64_t right, const Text& with);

// A line of a text, as str.splitlines() gives it. [begin, end) is the line without its line end. The next line begins at `next`.
struct Line {
  std::size_t begin, end, next;
};
[[nodiscard]] std::vector<Line> lines_of(Evaluator& evaluator, std::string_view text);

[[nodiscard]] const Value& need_string(std::string_view function, const Value& value);
[[nodiscard]] std::int64_t need_whole(std::string_view function, const Value& value);

}  // namespace tessera::jinja
