// The operations that made an edited session. A replay repeats them and gives the same bits. Recorded from the first edit on.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>

namespace tessera::detail {

struct History {
  // Tokens [first, last) of the sequence were removed when `computed` tokens had been appended in all. Removing the end is a truncation.
  // Several removals can be one edit, which moves the remaining tokens once: later removals join the first, and all of them count positions
  // as they were before the edit.
  struct Removal {
    std::size_t computed, first, last;
    bool joins = false;
  };

  std::vector<Token> tokens;      // all tokens that were appended, in order; -1 for an embedding
  std::vector<Hash128> contents;  // content_hash() of each embedding among `tokens`
  std::vector<Removal> removals;
  bool replayable = true;         // false: too long to keep, or of a range of layers

  // Forgets the history. Only `replayable` = false remains.
  void give_up() noexcept { *this = {.tokens = {}, .contents = {}, .removals = {}, .replayable = false}; }
};

}  // namespace tessera::detail
