// What filters and methods of strings share: places in text, all in bytes.
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
// What is left of a text without `characters` at its ends; without white space if that is nullptr.
[[nodiscard]] Extent stripped(std::string_view text, const std::string_view* characters, Ends ends);

// Python's str.replace(); times < 0: all.
[[nodiscard]] Value replaced(Evaluator& evaluator, const Text& text, const Text& old, const Text& fresh, std::int64_t times);

[[nodiscard]] Value part(Evaluator& evaluator, const Text& text, std::size_t begin, std::size_t end);

// `text` with every word's first letter in upper case (str.title()), or only its own (str.capitalize()).
[[nodiscard]] Value titled(Evaluator& evaluator, const Text& text);
[[nodiscard]] Value capitalized(Evaluator& evaluator, const Text& text);
[[nodiscard]] Value in_case(Evaluator& evaluator, const Text& text, Case to);

// Blanks around a text up to a width in characters.
[[nodiscard]] Value padded(Evaluator& evaluator, const Text& text, std::int64_t left, std::int64_t right, const Text& with);

// Without line ends, as str.splitlines(); the extents of the lines with them too.
struct Line {
  std::size_t begin, end, next;
};
[[nodiscard]] std::vector<Line> lines_of(Evaluator& evaluator, std::string_view text);

[[nodiscard]] const Value& need_string(std::string_view function, const Value& value);
[[nodiscard]] std::int64_t need_whole(std::string_view function, const Value& value);

}  // namespace tessera::jinja
