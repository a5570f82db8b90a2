// Characters of UTF-8 text, and what Python's str methods know of them. A byte that belongs to no character counts as a character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "chat/jinja/text.hpp"

namespace tessera::jinja {

// Returns the bytes of the first character. Precondition: the text is not empty.
[[nodiscard]] std::size_t character_size(std::string_view text) noexcept;
[[nodiscard]] std::size_t count_characters(std::string_view text) noexcept;
// Returns where character `index` begins, counted from `from`; the text's size if there are fewer characters.
[[nodiscard]] std::size_t character_offset(std::string_view text, std::size_t index, std::size_t from = 0) noexcept;
// Returns the first character; U+FFFD if the first byte belongs to none.
[[nodiscard]] std::uint32_t first_character(std::string_view text) noexcept;

[[nodiscard]] bool is_space(std::uint32_t character) noexcept;  // str.isspace()
[[nodiscard]] bool is_printable(std::uint32_t character) noexcept;
[[nodiscard]] bool is_alphabetic(std::uint32_t character) noexcept;
[[nodiscard]] bool is_digit(std::uint32_t character) noexcept;
[[nodiscard]] bool is_upper(std::uint32_t character) noexcept;
[[nodiscard]] bool is_lower(std::uint32_t character) noexcept;

enum class Case : std::uint8_t { upper, lower, title };
// Appends the character of `whole` that begins at `at`, in a case. The characters beside it count: a sigma at a word's end has another
// form in lower case.
void append_in_case(Text& out, std::string_view whole, std::size_t at, Case to, TextOrigin origin);
[[nodiscard]] Text to_case(const Text& text, Case upper_or_lower);
// Returns Python's str.lower(). jinja2 sorts by the result.
[[nodiscard]] std::string lower(std::string_view text);

}  // namespace tessera::jinja
