// Decodes one request, from its prompt to its end, one step at a time. A run (engine/run/run.hpp) computes rows of several sequences
// together; the rows of one sequence in a run are a part of the run. The caller (Session::generate() for one request, a scheduler for
// many) lets the decoding add its part to a run, computes the run, and lets the decoding take the results:
//
//   Run run(engine, all_layers(engine));
//   TESSERA_TRY(const bool in_run, decoding.offer_ready(run, room));  // false: the logits are known, no step is needed
//   run.compute();
//   TESSERA_TRY(std::optional<Piece> piece, decoding.next(run));      // no piece: the prompt is not done
//
// After an error the session is as it was before the offer, and the caller may offer again.
//
// With a drafter, the part has more rows: first the pending token (the last token of the sequence, which is not computed yet), then the
// drafts. If drafts branch, each branch is one more part of the run, directly behind the decoding's own. next() commits only the rows
// that are not drafts. The keys and values of drafts are kept behind the session's length. draw() commits them one by one, whenever the
// sampler draws the token that was drafted. So between two pieces the session is just as it would be without drafts.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <tessera/sampling/sampler.hpp>

#include "decoding/speculation.hpp"
#include "decoding/text_state.hpp"
#include "engine/run/run.hpp"

namespace tessera::detail {

// Checks that the sampler can draw from the engine's vocabulary.
[[nodiscard]] Status check_sampler(const Sampler& sampler, const Engine& engine) noexcept;

class Decoding {
 public:
  // `prompt` has the tokens that follow the session's tokens. Session and sampler must outlive the decoding. Tells the sampler that an
  // answer and its text begin (Sampler::begin_answer(), begin_text()).
  Decoding(Session::State& session, Sampler& sampler, const GenerateOptions& options, std::vector<Token> prompt = {});

  // Makes the drafter that the options name; from now on offers have drafts. With DraftsChosen::by_caller the caller decides how many: if
  // an offer has more rows (`most`) than rows_wanted(), the others are for drafts.
  Status start_drafting(DraftsChosen chosen = DraftsChosen::here);

  // Returns how many rows the next run should compute, drafts not counted. 0: no run is needed, because the logits after the last token
  // are known.
  [[nodiscard]] std::size_t rows_wanted() const noexcept;
  // Takes the pages that the prefix index has for the pending tokens and the rest of the prompt. Returns how many tokens they hold.
  std::size_t reuse_prefix() noexcept;
  // Adds a part of at most `most` rows to the run, and reserves the pages of the rows. Returns false if no part is needed. If the part
  // ends with the last token of the sequence or of the prompt, the next token will be drawn from its logits, and the part may have
  // drafts: a chain, and at most `branches` other chains that branch off. If there are no pages for drafts, there are none.
  Result<bool> offer_ready(Run& run, std::size_t most, std::size_t branches = ~std::size_t{0});
  [[nodiscard]] std::size_t part() const noexcept { return part_; }
  // Returns how many parts of the run are this decoding's: its own, part(), and those of branches behind it.
  [[nodiscard]] std::size_t parts() const noexcept { return 1 + branches_; }
  // Call it after the run was computed. Commits the part and returns the next piece. If there was no part, draws the piece from the known
  // logits. Returns no piece if the prompt is not done yet, or if the run failed because of drafts: then the next offer has none. After
  // an error the part is undone.
  Result<std::optional<Piece>> next(Run& run);
  // Calls sink(Piece) with the next piece, and with further pieces as long as drafts were accepted, which need no further step.
  template <class Sink>
  Status take_all(Run& run, Sink&& sink) {
    TESSERA_TRY(std::optional<Piece> piece, next(run));
    if (!piece) return {};
    sink(*std::move(piece));
    while (is_ahead()) {
      TESSERA_TRY(Piece more, draw());
      sink(std::move(more));
    }
    return {};
  }
  // Returns whether a computed draft was accepted, so that draw() can give the next piece without a step.
  [[nodiscard]] bool is_ahead() const noexcept { return speculation_ && speculation_->is_ahead(); }
  // Drops the keys and values of drafts that were computed but not drawn. Call it if no further piece is wanted.
  void leave() noexcept;
  // The drafts that the next offer may have, for a caller that decides how many it gets (DraftsChosen::by_caller).
  struct DraftWish {
    std::uint32_t most = 0;
    std::uint32_t branches = 0;  // how many chains may branch off the first chain
    double chance = 0.0;   // probability that a draft is accepted if all before it were; infinite: drafts are wanted at any cost
    double seconds = 0.0;  // time to make one draft
  };
  [[nodiscard]] DraftWish draft_wish() noexcept;
  // Returns how many seconds it took to make the drafts of the last offer.
  [[nodiscard]] double drafting_seconds() const noexcept { return speculation_ ? speculation_->drafting_seconds() : 0.0; }
  // Returns the error because of which no more drafts are made; success if there was none.
  [[nodiscard]] Status drafting() const noexcept { return speculation_ ? speculation_->status() : Status(); }

  // Returns the end of the prompt that was not appended to the session yet.
  [[nodiscard]] std::span<const Token> rest_of_prompt() const noexcept { return std::span(prompt_).subspan(prompt_done_); }

  // Appends rest_of_prompt() to the session as pending tokens, for a caller that continues from the session by other means (a beam
  // search).
  void hand_prompt_over() noexcept;

  [[nodiscard]] FinishReason finish_reason() const noexcept { return text_.finish_reason(); }
  [[nodiscard]] const Figures& figures() const noexcept { return text_.figures(); }

 private:
  Result<bool> offer(Run& run, std::size_t most, std::size_t branches);
  Status make_ready(Run& run) noexcept;
  Result<std::optional<Piece>> take(Run& run);
  Result<Piece> draw();
  // Handles an error of a run. If the run had drafts and was not cancelled, returns true: the next offer will have no drafts, so it may
  // succeed.
  bool retries_without_drafts(const Error& error) noexcept;
  Status accept(Piece& piece);
  void deliver(const Piece& piece) noexcept;
  [[nodiscard]] std::size_t room_for_drafts(std::size_t most) const noexcept;
  void drop_drafts() noexcept;

  Session::State& session_;
  Sampler& sampler_;
  std::vector<Token> prompt_;
  std::size_t prompt_done_ = 0;  // how many tokens of prompt_ the session has
  std::size_t offered_ = 0;      // how many tokens of prompt_ the present run computes
  bool in_run_ = false;          // true: the last offer has added a part
  std::size_t part_ = 0;
  std::size_t drafts_ = 0;       // number of drafts in the run, 0 if there are none
  std::size_t branches_ = 0;     // number of branches, whose parts follow part_
  bool no_drafts_ = false;       // true: the next offer must have no drafts
  Draw draw_;
  TextState text_;
  std::unique_ptr<Speculation> speculation_;  // nullptr: the request has no drafter
};

}  // namespace tessera::detail
