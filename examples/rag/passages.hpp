// Cuts a text into passages: the pieces that are embedded and found.
//
//   # Lamps              ->  Passage{.heading = "Lamps", .text = "A lamp needs oil.", .first_line = 3, .last_line = 3}
//                            Passage{.heading = "Lamps > Wicks", .text = "Trim the wick.", ...}
//   A lamp needs oil.
//   ## Wicks
//   Trim the wick.
//
// Rules, in order: a passage is within one section of headings, except that a short section goes on with the next one; it ends between two
// paragraphs (table rows, blocks of code) if one of them would be too much; a paragraph that is too long alone is cut between lines,
// sentences, words. A passage that is cut off within a section begins with the last lines of the one before it (the overlap).
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
  std::size_t most_tokens = 200;  // of a passage, without its heading
  std::size_t overlap = 40;       // tokens, at most
};

struct Passage {
  std::string heading;  // the headings above it, from the outermost inwards: "Lamps > Wicks"; of a file without headings, its name
  std::string text;
  std::size_t first_line = 0, last_line = 0;  // of the file, from 1
};

// Cuts the file `name`, whose extension says if its text is Markdown.
[[nodiscard]] std::vector<Passage> cut_text(std::string_view name, std::string_view text, const CountTokens& count, const CutOptions& options);

}  // namespace rag
