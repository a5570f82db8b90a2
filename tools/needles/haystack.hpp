// Made-up long texts with one sentence that matters: a number, and a question for it at the end.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::needles {

struct Haystack {
  std::string text;      // with the needle somewhere in it
  std::string question;  // which the answer follows
  std::string answer;    // digits
};

// About `words` words; the needle is where `depth` of them stand before it (0 to 1). The same for the same seed.
[[nodiscard]] Haystack make_haystack(std::uint64_t seed, std::size_t words, double depth);

}  // namespace tessera::needles
