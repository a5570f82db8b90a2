// Functions that filters and methods of strings share. Places in text are in bytes.
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
// Returns the extent of a text without `characters` at its ends; nullptr: without white space.
[[nodiscard]] Extent stripped(std::string_view text, const std::string_view* characters, Ends ends);

// Returns Python's str.replace(). times < 0: replaces all.
[[nodiscard]] Value replaced(Evaluator& evaluator, const Text& text, const Text& old, const Text& fresh, std::int64_t times);

[[nodiscard]] Value part(Evaluator& evaluator, const Text& text, std::size_t begin, std::size_t end);

// Return `text` with the first letter of every word in upper case (str.title()), or with its own first letter alone (str.capitalize()).
[[nodiscard]] Value titled(Evaluator& evaluator, const Text& text);
[[nodiscard]] Value capitalized(Evaluator& evaluator, const Text& text);
[[nodiscard]] Value in_case(Evaluator& evaluator, const Text& text, Case to);

// Returns a text between `left` and `right` copies of `with`.
[[nodiscard]] Value padded(Evaluator& evaluator, const Text& text, std::int64_t left, std::int64_t right, const Text& with);

// A line: its extent without the line end, as str.splitlines() gives it, and its extent with the line end.
struct Line {
  std::size_t begin, end, next;
};
[[nodiscard]] std::vector<Line> lines_of(Evaluator& evaluator, std::string_view text);

[[nodiscard]] const Value& need_string(std::string_view function, const Value& value);
[[nodiscard]] std::int64_t need_whole(std::string_view function, const Value& value);

}  // namespace tessera::jinja
