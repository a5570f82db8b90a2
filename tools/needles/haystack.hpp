// Makes long texts with one important sentence (the needle), which contains a number, and ends them with a question for the number.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::needles {

struct Haystack {
  std::string text;      // the text, with the needle in it
  std::string question;  // the question, after which the model writes the answer
  std::string answer;    // digits
};

// Returns a text of about `words` words, with its needle and question. `depth`: where the needle stands, as the share of words in front of
// it, from 0 to 1. The same seed gives the same text.
[[nodiscard]] Haystack make_haystack(std::uint64_t seed, std::size_t words, double depth);

}  // namespace tessera::needles
