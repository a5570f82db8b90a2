// EarlyExit decides for one request which tokens are drawn after the model's first layers alone (EarlyExitOptions).
//
// A token that exits becomes a pending token of the session, as every drawn token does. The step of the next token that does not exit
// computes all pending tokens in all layers. Nothing else is kept between two tokens: the keys and values of a try are dropped, and the next
// try computes the pending tokens in the first layers again. So a fork, a saved session or a preempted request has only tokens to go on from.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <tessera/generation.hpp>
#include <tessera/session.hpp>

namespace tessera::detail {

class EarlyExit {
 public:
  // Checks the options. Precondition: options.early_exit.layers is not 0.
  static Result<std::unique_ptr<EarlyExit>> make(const GenerateOptions& options, const Session::State& session);

  // Begins the offer of a token: no layers were asked yet.
  void begin() noexcept { has_tried_ = has_exited_ = false, seconds_ = 0.0; }
  // Returns whether the next token may exit: false after most_in_row tokens that have.
  [[nodiscard]] bool may_exit() const noexcept { return in_row_ < options_.most_in_row; }
  // Returns how many pending tokens a session has at most, if they are pending only because they exited.
  [[nodiscard]] std::size_t most_pending() const noexcept { return std::size_t{options_.most_in_row} + 1; }
  // Computes the session's pending tokens in the first layers. Returns whether the next token exits: draw it from logits(). After an error
  // the session is as it was.
  Result<bool> try_exit(Session::State& session, const std::stop_token& stop);
  [[nodiscard]] bool has_tried() const noexcept { return has_tried_; }
  [[nodiscard]] bool has_exited() const noexcept { return has_exited_; }
  [[nodiscard]] std::span<const float> logits() const noexcept { return logits_; }  // [vocab]
  // Notes that the token of this offer was drawn.
  void follow() noexcept { in_row_ = has_exited_ ? in_row_ + 1 : 0, begin(); }
  [[nodiscard]] double seconds() const noexcept { return seconds_; }  // that the try of this offer took

 private:
  EarlyExit(const EarlyExitOptions& options, std::size_t vocab) : options_(options), logits_(vocab) {}

  EarlyExitOptions options_;
  std::vector<float> logits_;
  std::uint32_t in_row_ = 0;  // tokens that have exited since the last one that has not
  bool has_tried_ = false, has_exited_ = false;
  double seconds_ = 0.0;
};

}  // namespace tessera::detail
