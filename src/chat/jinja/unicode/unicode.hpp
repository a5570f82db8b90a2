// Characters of UTF-8 text, and the properties of characters that Python's str methods use. A byte that is not valid UTF-8 counts as one
// character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "chat/jinja/text.hpp"

namespace tessera::jinja {

// Returns how many bytes the first character has. Precondition: the text is not empty.
[[nodiscard]] std::size_t character_size(std::string_view text) noexcept;
[[nodiscard]] std::size_t count_characters(std::string_view text) noexcept;
// Returns the byte offset of a character: the one with index `index`, where the character at byte offset `from` has index 0. If there are
// fewer characters, returns the text's size.
[[nodiscard]] std::size_t character_offset(std::string_view text, std::size_t index, std::size_t from = 0) noexcept;
// Returns the code point of the first character; U+FFFD if the first byte is not valid UTF-8.
[[nodiscard]] std::uint32_t first_character(std::string_view text) noexcept;

[[nodiscard]] bool is_space(std::uint32_t character) noexcept;  // str.isspace()
[[nodiscard]] bool is_printable(std::uint32_t character) noexcept;
[[nodiscard]] bool is_alphabetic(std::uint32_t character) noexcept;
[[nodiscard]] bool is_digit(std::uint32_t character) noexcept;
[[nodiscard]] bool is_upper(std::uint32_t character) noexcept;
[[nodiscard]] bool is_lower(std::uint32_t character) noexcept;

enum class Case : std::uint8_t { upper, lower, title };
// Appends one character to `out`, converted to the case `to`. The character is at offset `at` of the text `whole`. The whole
// text is needed because a Greek sigma at the end of a word has another lower case than elsewhere.
void append_in_case(Text& out, std::string_view whole, std::size_t at, Case to, TextOrigin origin);
[[nodiscard]] Text to_case(const Text& text, Case upper_or_lower);
// Returns Python's str.lower(), by which jinja2 sorts.
[[nodiscard]] std::string lower(std::string_view text);

}  // namespace tessera::jinja
