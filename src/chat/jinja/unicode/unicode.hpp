// Characters of UTF-8 text, and what Python's str methods know of them. A byte that belongs to no character counts as
// one of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "chat/jinja/text.hpp"

namespace tessera::jinja {

// Bytes of the first character of a text that is not empty.
[[nodiscard]] std::size_t character_size(std::string_view text) noexcept;
[[nodiscard]] std::size_t count_characters(std::string_view text) noexcept;
// Where character `index` begins, from `from`; the text's size if there are fewer.
[[nodiscard]] std::size_t character_offset(std::string_view text, std::size_t index, std::size_t from = 0) noexcept;
// The first character; U+FFFD if its byte belongs to none.
[[nodiscard]] std::uint32_t first_character(std::string_view text) noexcept;

[[nodiscard]] bool is_space(std::uint32_t character) noexcept;  // str.isspace()
[[nodiscard]] bool is_printable(std::uint32_t character) noexcept;
[[nodiscard]] bool is_alphabetic(std::uint32_t character) noexcept;
[[nodiscard]] bool is_digit(std::uint32_t character) noexcept;
[[nodiscard]] bool is_upper(std::uint32_t character) noexcept;
[[nodiscard]] bool is_lower(std::uint32_t character) noexcept;

enum class Case : std::uint8_t { upper, lower, title };
// The character of `whole` that begins at `at`, in a case. Its neighbours count: a sigma at a word's end has a form of
// its own in lower case.
void append_in_case(Text& out, std::string_view whole, std::size_t at, Case to, TextOrigin origin);
[[nodiscard]] Text to_case(const Text& text, Case upper_or_lower);
// Python's str.lower(), of which jinja2 makes the keys of its sorting.
[[nodiscard]] std::string lower(std::string_view text);

}  // namespace tessera::jinja
