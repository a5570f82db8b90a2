// Properties of characters (is it a letter, white space, ...?) as the crate `tokenizers` (Hugging Face) and Rust's standard library
// define them. They are computed from Unicode's tables in utf8proc. A character is a code point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/pipeline/character_tables.hpp"

namespace tessera::detail {

using CodePoint = std::int32_t;

// Returns the code point at offset `at` of valid UTF-8, and moves `at` to the next character.
[[nodiscard]] CodePoint next_code_point(std::string_view text, std::size_t& at) noexcept;
// Returns the offset of the character that ends before offset `at` of valid UTF-8. Precondition: at > 0.
[[nodiscard]] std::size_t previous_character(std::string_view text, std::size_t at) noexcept;

[[nodiscard]] bool is_white_space(CodePoint c) noexcept;      // White_Space
[[nodiscard]] bool is_word_character(CodePoint c) noexcept;   // \w of regular expressions: Alphabetic, M, Nd, Pc and the two joiners
[[nodiscard]] bool is_numeric(CodePoint c) noexcept;          // Nd, Nl, No
[[nodiscard]] bool is_cjk_ideograph(CodePoint c) noexcept;    // the blocks that BERT surrounds with spaces

// Appends the character in lower case. U+0130 becomes two characters.
void append_lower_case(std::string& out, CodePoint c);

}  // namespace tessera::detail
