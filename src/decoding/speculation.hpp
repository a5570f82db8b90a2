// The drafts of one request: proposed before a step, computed in it behind the request's own rows, and then drawn from
// one at a time, as long as the sampler draws what was drafted. So each token is drawn from the same logits, with the
// sampler in the same state, as without drafts. Of a tree of drafts the branches are computed in forks of the session's cache; if what is
// drawn leads into one, its cache becomes the session's.
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

// Who chooses how many drafts a step has, where the request leaves it to goodput.
enum class DraftsChosen : std::uint8_t {
  here,       // by what this request has measured of steps
  by_caller,  // who has several requests in a step, and knows what its rows cost
};

class Speculation {
 public:
  static Result<std::unique_ptr<Speculation>> make(const GenerateOptions& options, Session::State& session, Sampler& sampler,
                                                   DraftsChosen chosen = DraftsChosen::here);

  // For a caller that chooses: as Decoding::DraftWish says.
  [[nodiscard]] std::size_t most() const noexcept {
    return options_.length == DraftLength::longest ? options_.max_drafts : lengths_.trusted();
  }
  [[nodiscard]] double chance() noexcept;
  [[nodiscard]] double seconds_per_draft() const noexcept;
  [[nodiscard]] double drafting_seconds() const noexcept { return drafting_seconds_; }

  // Chains that drafts may have beside the first one.
  [[nodiscard]] std::size_t most_branches() const noexcept;

  // Drafts for the next step, at most `room`, in a chain and so many that branch off it; how long that chain is. A drafter's error ends
  // drafting, and is status().
  std::size_t propose(std::size_t room, std::size_t branches) noexcept;
  // The next step has none.
  void propose_none() noexcept;
  // The first chain's, behind the rows of the run's last part; the step begins.
  void add_rows(Run& run);
  // The branches, behind that part, which is ready; how many. What there are no pages for is left out.
  std::size_t add_branches(Run& run, std::size_t part) noexcept;
  // That part's drafts have been computed. Branches that were not are left out.
  void look_at(const Run& run) noexcept;
  // The step has been computed with `rows` of its session's.
  void step_ends(std::size_t rows) noexcept;
  // The step failed, or what is left of the drafts is not wanted: as if there had been none.
  void drop() noexcept;

  // The token that the sequence has now, pending. true: it was drafted, and the logits after it are known.
  bool follow(Token token) noexcept;
  [[nodiscard]] bool is_ahead() const noexcept { return is_ahead_ && !is_stale(); }
  // The backend has drawn behind the drafts, and the sampler was reseeded since: those draws are not the sampler's any more.
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

  std::vector<Token> chain_;    // as proposed; room for max_drafts
  std::vector<TreeDraft> proposed_;  // likewise
  DraftTree tree_;              // of the present step
  std::size_t position_ = 0;    // of its first drafts, as the cache counts
  std::size_t current_ = DraftTree::kNone;  // the draft that the sequence's last token was
  std::size_t accepted_ = 0;    // how many it has gone through
  bool is_ahead_ = false;
  LogitsBuffer logits_;         // [max_drafts, vocab]: after each draft of the tree, where the host draws
  std::vector<Draw> draws_;     // [drafts], where the backend does
  bool on_backend_ = false;
  std::uint64_t seed_ = 0;      // that these were drawn with
  std::uint32_t stream_ = 0;

  std::vector<Token> guesses_;  // behind the last step's drafts, for a drafter that wants them; room for max_drafts
  DraftLengths lengths_;
  bool is_warm_ = false;        // the drafter has read the prompt
  Clock::time_point step_begins_;
  double drafting_seconds_ = 0.0;  // of the last propose()
  std::size_t told_drafted_ = 0, told_accepted_ = 0;  // of the last step, for the drafter
  std::size_t depth_ = 0;       // likewise: of the longest path
  std::size_t seen_ = 0;        // tokens that the drafter knows of
  std::uint64_t removed_ = 0;   // by edits of the session, until then
};

}  // namespace tessera::detail
