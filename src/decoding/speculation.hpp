// The drafts of one request. They are proposed before a step, and the step computes them behind the request's own rows. Then tokens are
// drawn one at a time, each from the logits behind the token before it, as long as the drawn token is the one that was drafted. So each
// token is drawn from the same logits, with the sampler in the same state, as without drafts. If drafts branch, each branch is computed in
// a fork of the session's cache. If the drawn tokens lead into a branch, the branch's cache becomes the session's.
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

// Says who chooses the number of drafts of a step, if the request leaves it to goodput.
enum class DraftsChosen : std::uint8_t {
  here,       // the Speculation, by the step times that this request has measured
  by_caller,  // the caller, who has several requests in a step and knows the cost of its rows
};

class Speculation {
 public:
  static Result<std::unique_ptr<Speculation>> make(const GenerateOptions& options, Session::State& session, Sampler& sampler,
                                                   DraftsChosen chosen = DraftsChosen::here);

  // Return the values of Decoding::DraftWish, for a caller that chooses the number of drafts.
  [[nodiscard]] std::size_t most() const noexcept {
    return options_.length == DraftLength::longest ? options_.max_drafts : lengths_.trusted();
  }
  [[nodiscard]] double chance() noexcept;
  [[nodiscard]] double seconds_per_draft() const noexcept;
  [[nodiscard]] double drafting_seconds() const noexcept { return drafting_seconds_; }

  // Returns how many chains drafts may have beside the first one.
  [[nodiscard]] std::size_t most_branches() const noexcept;

  // Asks for drafts for the next step, at most `room`: a chain, and at most `branches` chains that branch off. Returns the first
  // chain's length. An error of the drafter ends drafting, and is status().
  std::size_t propose(std::size_t room, std::size_t branches) noexcept;
  // Begins a step without drafts.
  void propose_none() noexcept;
  // Adds the first chain's rows behind the rows of the run's last part.
  void add_rows(Run& run);
  // Adds the branches behind `part`, which must be ready, and returns their number. Leaves out branches for which there are no pages.
  std::size_t add_branches(Run& run, std::size_t part) noexcept;
  // Call it when the drafts of the part have been computed. Leaves out branches that were not computed.
  void look_at(const Run& run) noexcept;
  // Call it when the step has been computed with `rows` rows of this session.
  void step_ends(std::size_t rows) noexcept;
  // Forgets the drafts, after a step that failed or when the remaining drafts are not wanted.
  void drop() noexcept;

  // Call it with the token that the sequence has now, pending. Returns whether the token was drafted, so that the logits after it are
  // known.
  bool follow(Token token) noexcept;
  [[nodiscard]] bool is_ahead() const noexcept { return is_ahead_ && !is_stale(); }
  // Returns whether the sampler was reseeded since the backend drew behind the drafts, so that these draws are void.
  [[nodiscard]] bool is_stale() const noexcept {
    return on_backend_ && !tree_.drafts().empty() && (sampler_.seed() != seed_ || sampler_.stream() != stream_);
  }
  // Draws the token after the last one that was followed.
  void draw(Draw& into) noexcept;

  // Tells the drafter what has happened since it was last told.
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
  std::vector<Token> chain_;    // a proposed chain; room for max_drafts
  std::vector<TreeDraft> proposed_;  // the proposed drafts; room for max_drafts
  DraftTree tree_;              // drafts of the present step
  std::size_t position_ = 0;    // position of the first drafts in the cache
  std::size_t current_ = DraftTree::kNone;  // the draft that the sequence's last token was
  std::size_t accepted_ = 0;    // drafts of the tree that were accepted
  bool is_ahead_ = false;
  LogitsBuffer logits_;         // [max_drafts, vocab]: after each draft of the tree, where the host draws
  std::vector<Draw> draws_;     // [drafts], where the backend draws
  bool on_backend_ = false;
  std::uint64_t seed_ = 0;      // seed and stream with which the backend drew
  std::uint32_t stream_ = 0;

  std::vector<Token> guesses_;  // tokens guessed behind the last step's drafts, if the drafter wants them; room for max_drafts
  DraftLengths lengths_;
  bool is_warm_ = false;        // the drafter has read the prompt
  Clock::time_point step_begins_;
  double drafting_seconds_ = 0.0;  // seconds of the last propose()
  std::size_t told_drafted_ = 0, told_accepted_ = 0;  // numbers of drafts and accepted drafts that tell() reports next
  std::size_t depth_ = 0;       // drafts of the last step's longest path
  std::size_t seen_ = 0;        // tokens that the drafter knows of
  std::uint64_t removed_ = 0;   // SessionView::removed at the last tell()
};

}  // namespace tessera::detail
