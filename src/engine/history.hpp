// How an edited session came to be: what a replay does again, to give the same bits. Recorded from the first edit on.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/token.hpp>

namespace tessera::detail {

struct History {
  // Tokens [first, last) of the sequence were removed when `computed` tokens had been appended in all. Removing the end
  // is a truncation.
  struct Removal {
    std::size_t computed, first, last;
  };

  std::vector<Token> tokens;      // all that were appended, in order
  std::vector<Removal> removals;
  bool replayable = true;         // false: too long to keep, or not tokens alone
};

}  // namespace tessera::detail
