// Draws tokens from rows of logits on the host, for backends and samplers that cannot draw on the backend.
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

// A token to be drawn after a row, and its result.
struct Draw {
  Sampler* sampler = nullptr;
  std::uint32_t logprobs = 0;  // number of likeliest tokens to report, with the drawn token's own log-probability; 0: none

  Piece piece = {};  // the drawn token, with its log-probabilities
  Status status = {};
};

// Draws draw.piece's token from the row's logits [vocab], never a suppressed token. `history` ends with the row's own token. An error is
// put into draw.status.
void draw_from(Draw& draw, std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
               std::span<const Token> suppressed) noexcept;

// The draws of one step. It collects the logits of a few rows and then draws from them in parallel.
class HostDraws {
 public:
  // Begins a step that draws from `rows` rows. Makes room for the logits of the rows that can be drawn from at once. `suppressed` must live
  // until clear().
  Status begin(Memory& memory, Executor& executor, std::size_t rows, std::size_t vocab, std::span<const Token> suppressed);
  // Returns the place for the next row's logits  [vocab].
  [[nodiscard]] std::span<float> destination() noexcept;
  // Takes the row whose logits are now at destination(). Draws from all collected rows if there is room for no more, or if the row is the
  // step's last. Exception: a step's only row waits for finish().
  void add(Draw& draw, std::span<const Token> history, std::uint64_t position) noexcept;
  // Draws from the remaining rows, on the calling thread.
  void finish() noexcept;
  void clear() noexcept { items_.clear(); }  // the logits' memory stays for the next step

 private:
  struct Item {
    Draw* draw;
    std::span<const Token> history;
    std::uint64_t position;
    std::size_t slot;  // row of logits_ with the item's logits
  };
  void draw_all() noexcept;
  void draw_items(std::size_t first, std::size_t last) noexcept;

  Executor* executor_ = nullptr;
  LogitsBuffer logits_;
  std::vector<Item> items_;
  std::span<const Token> suppressed_;
  std::size_t vocab_ = 0;
  std::size_t slots_ = 0;
  std::size_t left_ = 0;   // rows of the step that were not added yet
  bool single_ = false;
};

}  // namespace tessera::detail
