// The record of all tokens and edits of an edited session, from its first edit on. Session::verify() repeats them in a fresh session,
// which must give the same bits.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>

namespace tessera::detail {

struct History {
  // Tokens [first, last) of the sequence were removed after `computed` tokens had been appended in all. (A truncation removes up to the
  // end.) If one edit removes several runs, the tokens that stay are moved only once. Each further run has `joins` set, and the positions
  // of all runs are those before the edit.
  struct Removal {
    std::size_t computed, first, last;
    bool joins = false;
  };

  std::vector<Token> tokens;      // all tokens that were appended, in order; -1 for an embedding
  std::vector<Hash128> contents;  // content_hash() of each embedding among `tokens`
  std::vector<Removal> removals;
  bool replayable = true;         // false: the history was too long to keep, or the session computes only a range of layers

  // Frees the history. Only the fact that it cannot be replayed is kept.
  void give_up() noexcept { *this = {.tokens = {}, .contents = {}, .removals = {}, .replayable = false}; }
};

}  // namespace tessera::detail
