// The drafts of one request. A drafter makes drafts before a step, and the step computes them after the request's own rows. Then tokens are
// drawn one at a time, each from the logits of the token before it, until a drawn token is not the drafted token. So each token is drawn
// from the same logits, and with the same state of the sampler, as without drafts. If drafts branch, each branch is computed in a fork of
// the session's cache. If the drawn tokens follow a branch, its fork replaces the session's cache.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <tessera/extend/decoding/drafter.hpp>

#include "decoding/draft_length.hpp"
#include "decoding/draft_tree.hpp"
#include "engine/run/draw.hpp"
#include "engine/run/logits_buffer.hpp"
#include "engine/run/run.hpp"

namespace tessera::detail {

// Says who decides the number of drafts of a step, if the request asks for the number with the best goodput.
enum class DraftsChosen : std::uint8_t {
  here,       // this class, by the measured times of this request's steps
  by_caller,  // the caller, because it knows the other requests of the step and the cost of its rows
};

class Speculation {
 public:
  static Result<std::unique_ptr<Speculation>> make(const GenerateOptions& options, Session::State& session, Sampler& sampler,
                                                   DraftsChosen chosen = DraftsChosen::here);

  // Return the values of Decoding::DraftWish, for a caller that decides the number of drafts.
  [[nodiscard]] std::size_t most() const noexcept {
    return options_.length == DraftLength::longest ? options_.max_drafts : lengths_.trusted();
  }
  [[nodiscard]] double chance() noexcept;
  [[nodiscard]] double seconds_per_draft() const noexcept;
  [[nodiscard]] double drafting_seconds() const noexcept { return drafting_seconds_; }

  // Returns the limit of chains besides the trunk.
  [[nodiscard]] std::size_t most_branches() const noexcept;

  // Lets the drafter make at most `room` drafts for the next step: a chain, and at most `branches` chains that branch off. Returns the
  // length of the first chain. If the drafter fails, no more drafts are made, and status() returns the error.
  std::size_t propose(std::size_t room, std::size_t branches) noexcept;
  // Prepares a step without drafts.
  void propose_none() noexcept;
  // Adds the rows of the first chain to the run's last part.
  void add_rows(Run& run);
  // Adds the branches to the run as further parts after `part`, and returns the number of added branches. Leaves out a branch for which there
  // are no pages. Preconditions: `part` is the run's last part, and its pages are reserved.
  std::size_t add_branches(Run& run, std::size_t part) noexcept;
  // Call this after the run was computed. Leaves out branches whose rows failed.
  void look_at(const Run& run) noexcept;
  // Call this after a step with `rows` rows of this session was computed.
  void step_ends(std::size_t rows) noexcept;
  // Drops the drafts, because the step failed or the remaining drafts are not wanted.
  void drop() noexcept;

  // Call this when `token` has been drawn and is the sequence's last, pending token. Returns whether the token was drafted; then the logits
  // after the token are known.
  bool follow(Token token) noexcept;
  [[nodiscard]] bool is_ahead() const noexcept { return is_ahead_ && !is_stale(); }
  // Returns whether the sampler was reseeded after the backend drew tokens for the drafts. Those draws are then invalid.
  [[nodiscard]] bool is_stale() const noexcept {
    return on_backend_ && !tree_.drafts().empty() && (sampler_.seed() != seed_ || sampler_.stream() != stream_);
  }
  // Draws the token after the last accepted draft.
  void draw(Draw& into) noexcept;

  // Tells the drafter what happened to the sequence and to its drafts since the last call.
  void tell() noexcept;

  [[nodiscard]] std::size_t drafts() const noexcept { return tree_.size(); }
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  using Clock = std::chrono::steady_clock;
  Speculation(const GenerateOptions& options, Session::State& session, Sampler& sampler, DraftsChosen chosen);
  Status ask(std::size_t room, std::size_t branches);
  Result<std::size_t> proposals(std::size_t wanted, std::size_t branches);
  void grow(std::size_t branches);
  [[nodiscard]] RunRow row_of(std::size_t draft) noexcept;
  [[nodiscard]] std::span<float> logits_behind(std::size_t draft) noexcept { return logits_.values().subspan(draft * vocab_, vocab_); }
  Status fork(std::size_t chain, std::uint64_t position);
  void guess() noexcept;
  [[nodiscard]] bool ends(Token token) const noexcept;

  Session::State& session_;
  Sampler& sampler_;
  SpeculateOptions options_;
  DraftsChosen chosen_;
  std::stop_token stop_;
  std::vector<Token> stop_tokens_;
  EndOfGeneration end_of_generation_;
  std::uint32_t logprobs_;
  std::unique_ptr<Drafter> drafter_;
  Status status_;

  std::size_t vocab_;
  std::vector<Token> chain_;    // the drafter's chain; has memory for max_drafts
  std::vector<TreeDraft> proposed_;  // the drafter's drafts; has memory for max_drafts
  DraftTree tree_;              // drafts of the present step
  std::size_t position_ = 0;    // position in the cache of drafts of depth 0
  std::size_t current_ = DraftTree::kNone;  // the draft that is the sequence's last token now
  std::size_t accepted_ = 0;    // number of the tree's drafts that were accepted
  bool is_ahead_ = false;
  LogitsBuffer logits_;         // [max_drafts, vocab]: logits of each draft; used if the host draws
  std::vector<Draw> draws_;     // [number of drafts]; used if the backend draws
  bool on_backend_ = false;
  std::uint64_t seed_ = 0;      // seed and stream of the sampler when the backend drew
  std::uint32_t stream_ = 0;

  std::vector<Token> guesses_;  // likeliest token after each draft of the last step, if the drafter wants them; has memory for max_drafts
  DraftLengths lengths_;
  bool is_warm_ = false;        // true: the drafter has read the prompt
  Clock::time_point step_begins_;
  double drafting_seconds_ = 0.0;  // seconds that the last propose() took
  std::size_t told_drafted_ = 0, told_accepted_ = 0;  // numbers of made and accepted drafts that the next tell() reports
  std::size_t depth_ = 0;       // number of drafts on the longest path of the last step
  std::size_t seen_ = 0;        // number of the sequence's tokens that the drafter knows
  std::uint64_t removed_ = 0;   // SessionView::removed at the last tell()
};

}  // namespace tessera::detail
