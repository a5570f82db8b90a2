// Draws tokens from rows of logits on the host, if the backend cannot draw them (draws_on_backend()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tessera/extend/core/executor.hpp>
#include <tessera/generation.hpp>
#include <tessera/sampling/sampler.hpp>

#include "engine/run/logits_buffer.hpp"

namespace tessera::detail {

// A token that is drawn after a row, and its result.
struct Draw {
  Sampler* sampler = nullptr;
  // Number of likeliest tokens whose log-probabilities are reported, besides that of the drawn token. 0: no log-probabilities at all.
  std::uint32_t logprobs = 0;

  Piece piece = {};  // the drawn token, with its log-probabilities
  Status status = {};
};

// Draws the token that follows a row, from the row's logits [vocab], and stores the token in draw.piece. Never draws a token of
// `suppressed`. Stores an error in draw.status. `history`: the sequence's tokens up to the row's own token. `position`: the argument of
// Sampler::sample(), which chooses the random number.
void draw_from(Draw& draw, std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
               std::span<const Token> suppressed) noexcept;

// The draws of one step. Collects the logits of several rows, and then draws from these rows in parallel.
class HostDraws {
 public:
  // Begins a step in which tokens are drawn from the logits of `rows` rows. Allocates memory for the logits of those rows that are drawn
  // from at the same time: as many rows as `executor` has threads, at most 64. `suppressed` must live until clear().
  Status begin(Memory& memory, Executor& executor, std::size_t rows, std::size_t vocab, std::span<const Token> suppressed);
  // Returns the place to which the next row's logits are written  [vocab].
  [[nodiscard]] std::span<float> destination() noexcept;
  // Collects the row whose logits are now at destination(). If there is no memory for the logits of another row, or this is the step's
  // last row, draws from all collected rows. Exception: if a step has only one row, finish() draws from it.
  void add(Draw& draw, std::span<const Token> history, std::uint64_t position) noexcept;
  // Draws from the remaining rows, on the calling thread.
  void finish() noexcept;
  void clear() noexcept { items_.clear(); }  // keeps the logits' memory for the next step

 private:
  struct Item {
    Draw* draw;
    std::span<const Token> history;
    std::uint64_t position;
    std::size_t slot;  // index of the row of logits_ that has the item's logits
  };
  void draw_all() noexcept;
  void draw_items(std::size_t first, std::size_t last) noexcept;

  Executor* executor_ = nullptr;
  LogitsBuffer logits_;
  std::vector<Item> items_;
  std::span<const Token> suppressed_;
  std::size_t vocab_ = 0;
  std::size_t slots_ = 0;
  std::size_t left_ = 0;   // rows of the step that were not yet added
  bool single_ = false;
};

}  // namespace tessera::detail
