// Cuts a text into passages: the pieces that are embedded and found.
//
//   # Lamps              ->  Passage{.heading = "Lamps", .text = "A lamp needs oil.", .first_line = 3, .last_line = 3}
//                            Passage{.heading = "Lamps > Wicks", .text = "Trim the wick.", ...}
//   A lamp needs oil.
//   ## Wicks
//   Trim the wick.
//
// Rules:
// - A passage ends where a section ends. Exception: a passage with less than a quarter of most_tokens goes on with the next section.
// - A passage ends between two units (paragraphs, table rows, blocks of code) if with the second unit it would have more than most_tokens.
// - A unit that has more than most_tokens is cut between lines, else between sentences, else between words.
// - A passage that begins in the middle of a section repeats the last units of the passage before it, at most `overlap` tokens.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rag {

// Returns the number of tokens of a text, by the embedder's tokenizer.
using CountTokens = std::function<std::size_t(std::string_view)>;

struct CutOptions {
  std::size_t most_tokens = 200;  // the most tokens of a passage, without its heading
  std::size_t overlap = 40;       // tokens, at most
};

struct Passage {
  std::string heading;  // the headings above the passage, the outermost first: "Lamps > Wicks"; without headings the file's name
  std::string text;
  std::size_t first_line = 0, last_line = 0;  // of the file, from 1
};

// Cuts the file `name`, whose extension says if its text is Markdown.
[[nodiscard]] std::vector<Passage> cut_text(std::string_view name, std::string_view text, const CountTokens& count, const CutOptions& options);

}  // namespace rag
