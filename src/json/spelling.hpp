// How JSON texts spell strings and numbers: as Python's json.dumps does, which the templates of models expect.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::detail {

enum class JsonCharacters : std::uint8_t { any, ascii };  // ascii: the others are escaped, as by ensure_ascii

// What stands for a character in a string; empty: it stands for itself.
[[nodiscard]] std::string json_escape(std::uint32_t character, JsonCharacters characters = JsonCharacters::any);

// A string with its quotes. Bytes that are no UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view content);
[[nodiscard]] std::string json_string(std::string_view content);

[[nodiscard]] std::string json_number(double value);  // "1.0", "1e-05"; NaN and Infinity, which no other JSON has

}  // namespace tessera::detail
