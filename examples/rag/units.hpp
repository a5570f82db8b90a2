// The smallest pieces of a text that stay whole if they can: paragraphs, rows of tables, blocks of code.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rag {

inline constexpr std::string_view kHeadingSeparator = " > ";

struct Unit {
  std::string heading;  // Passage::heading
  std::string text;     // without the line end at its end
  std::size_t first_line = 0, last_line = 0;  // from 1
  bool joined = false;  // no empty line is between this unit and the one before it
};

[[nodiscard]] bool is_markdown(std::string_view name) noexcept;

// Cuts a Markdown text into units. Headings are lines that begin with one to six "#". Front matter between "---" lines, and comments (<!-- -->),
// are left out.
[[nodiscard]] std::vector<Unit> markdown_units(std::string_view name, std::string_view text);

// Cuts a text that is not Markdown into units. Empty lines separate the units.
[[nodiscard]] std::vector<Unit> plain_units(std::string_view name, std::string_view text);

}  // namespace rag
