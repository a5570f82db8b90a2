// How an edited session came to be: what a replay does again, to give the same bits. Recorded from the first edit on.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/token.hpp>

namespace tessera::detail {

struct History {
  // Tokens [first, last) of the sequence were removed when `computed` tokens had been appended in all. Removing the end
  // is a truncation. Several removals can be one edit, which moves what stays once: the later ones join the first, and count
  // places as they were before it.
  struct Removal {
    std::size_t computed, first, last;
    bool joins = false;
  };

  std::vector<Token> tokens;      // all that were appended, in order
  std::vector<Removal> removals;
  bool replayable = true;         // false: too long to keep, or not tokens alone

  // Keeps no more of it than that it cannot be replayed.
  void give_up() noexcept { *this = {.tokens = {}, .removals = {}, .replayable = false}; }
};

}  // namespace tessera::detail
