// The history of an edited session: all tokens that were appended, and all edits. The history is recorded from the first edit on.
// Session::verify() repeats the appends and the edits in a fresh session, which must compute the same bits.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>

namespace tessera::detail {

struct History {
  // One removed run of tokens: positions [first, last) of the sequence. When the run was removed, `computed` tokens had been appended in
  // all. (A truncation is a run that ends at the sequence's end.) One edit can remove several runs, for example a drop of a token budget.
  // The positions of all runs of an edit are those before the edit. `joins` is set in each run of an edit except the first.
  struct Removal {
    std::size_t computed, first, last;
    bool joins = false;
  };

  std::vector<Token> tokens;      // all tokens that were appended, in order; -1 for an embedding
  std::vector<Hash128> contents;  // content_hash() of each embedding among `tokens`
  std::vector<Removal> removals;
  bool replayable = true;         // false: the history was too long to keep, or the session computes only a range of layers

  // Frees the history, and records that it cannot be replayed.
  void give_up() noexcept { *this = {.tokens = {}, .contents = {}, .removals = {}, .replayable = false}; }
};

}  // namespace tessera::detail
