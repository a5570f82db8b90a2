// Writes strings and numbers for JSON texts as Python's json.dumps does, because the templates of models expect that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::detail {

enum class JsonCharacters : std::uint8_t { any, ascii };  // ascii: all other characters are escaped, as with ensure_ascii in Python

// Returns how a character is escaped within a JSON string ("\\n", "\\u0001"); empty if the character is written as it is.
[[nodiscard]] std::string json_escape(std::uint32_t character, JsonCharacters characters = JsonCharacters::any);

// Write a JSON string, quotes included. Bytes that are not valid UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view content);
[[nodiscard]] std::string json_string(std::string_view content);

[[nodiscard]] std::string json_number(double value);  // "1.0", "1e-05"; also NaN and Infinity, which standard JSON does not have

}  // namespace tessera::detail
