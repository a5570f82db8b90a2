// Tokens drawn from rows of logits on the host: what a step does where its backend draws none.
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

// A token to be drawn after a row, and what came of it.
struct Draw {
  Sampler* sampler = nullptr;
  std::uint32_t logprobs = 0;  // the n most likely tokens, and the drawn one's own

  Piece piece = {};  // the token, and what was asked for beside it
  Status status = {};
};

// Draws the piece's token from the row's logits [vocab]; `history` ends with the row's own token. An error is in
// draw.status. None of the suppressed tokens is drawn.
void draw_from(Draw& draw, std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
               std::span<const Token> suppressed) noexcept;

// The draws of one step: logits of a few rows at a time, drawn from in parallel when their number is reached.
class HostDraws {
 public:
  // Room for the logits of `rows` rows, but no more than can be drawn from at once. `suppressed`: until clear().
  Status begin(Memory& memory, Executor& executor, std::size_t rows, std::size_t vocab, std::span<const Token> suppressed);
  // Where the next row's logits go  [vocab].
  [[nodiscard]] std::span<float> destination() noexcept;
  // They are there. Draws from all that have come if there is room for no more, or if the row is the step's last; but
  // a step's only row waits for finish().
  void add(Draw& draw, std::span<const Token> history, std::uint64_t position) noexcept;
  // Draws from what is left, on the calling thread.
  void finish() noexcept;
  void clear() noexcept { items_.clear(); }  // the logits' memory stays for the next step

 private:
  struct Item {
    Draw* draw;
    std::span<const Token> history;
    std::uint64_t position;
    std::size_t slot;  // of the logits
  };
  void draw_all() noexcept;
  void draw_items(std::size_t first, std::size_t last) noexcept;

  Executor* executor_ = nullptr;
  LogitsBuffer logits_;
  std::vector<Item> items_;
  std::span<const Token> suppressed_;
  std::size_t vocab_ = 0;
  std::size_t slots_ = 0;
  std::size_t left_ = 0;   // rows of the step that are still to come
  bool single_ = false;
};

}  // namespace tessera::detail
