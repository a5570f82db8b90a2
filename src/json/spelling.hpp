// Spells strings and numbers in JSON texts as Python's json.dumps does, which the templates of models expect.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::detail {

enum class JsonCharacters : std::uint8_t { any, ascii };  // ascii: all other characters are escaped, as by ensure_ascii

// Returns the escape for a character in a string; empty if the character needs none.
[[nodiscard]] std::string json_escape(std::uint32_t character, JsonCharacters characters = JsonCharacters::any);

// Write a string with its quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view content);
[[nodiscard]] std::string json_string(std::string_view content);

[[nodiscard]] std::string json_number(double value);  // "1.0", "1e-05"; also NaN and Infinity, which standard JSON does not have

}  // namespace tessera::detail
