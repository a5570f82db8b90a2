#include "json/spelling.hpp"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "core/utf8.hpp"
#include "json/python_float.hpp"

namespace tessera::detail {

std::string json_escape(std::uint32_t character, JsonCharacters characters) {
  constexpr std::string_view from = "\"\\\b\f\n\r\t", to = "\"\\bfnrt";
  if (character < 0x80) {
    if (const std::size_t i = from.find(static_cast<char>(character)); i != from.npos) return {'\\', to[i]};
    return character < 0x20 ? fmt::format("\\u{:04x}", character) : std::string();
  }
  if (characters == JsonCharacters::any) return {};
  if (character < 0x10000) return fmt::format("\\u{:04x}", character);
  const std::uint32_t offset = character - 0x10000;  // characters beyond U+FFFF are escaped as two surrogates
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
}

void append_json_string(std::string& out, std::string_view content) {
  out += '"';
  for (std::size_t at = 0; at < content.size();) {
    const Utf8Step step = utf8_step(content.substr(at));
    const std::string escape = step.size == 1 ? json_escape(static_cast<unsigned char>(content[at])) : std::string();
    if (step.kind != Utf8Kind::valid) {
      out += kReplacement;
    } else if (!escape.empty()) {
      out += escape;
    } else {
      out += content.substr(at, step.size);
    }
    at += step.size;
  }
  out += '"';
}

std::string json_string(std::string_view content) {
  std::string out;
  append_json_string(out, content);
  return out;
}

std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return python_float(value);
}

}  // namespace tessera::detail
