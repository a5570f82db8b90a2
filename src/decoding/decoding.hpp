// Decodes one request step by step, from its prompt to its end. A run (engine/run/run.hpp) computes rows of several sequences together; the
// rows of one sequence are a part of the run. The caller (Session::generate() for one request, a scheduler for many) does three things in
// each step: it lets the decoding add its part to a run, computes the run, and lets the decoding read the results:
//
//   Run run(engine, all_layers(engine));
//   TESSERA_TRY(const bool in_run, decoding.offer_ready(run, room));  // false: the logits are known, no step is needed
//   run.compute();
//   TESSERA_TRY(std::optional<Piece> piece, decoding.next(run));      // no piece: the prompt is not done
//
// After an error the session is as it was before the offer, and the caller may offer again.
//
// With a drafter, the part also has rows of drafts. Its first row is the pending token (the last token of the sequence, which is not
// computed yet); the drafts follow. If drafts branch, each branch is one more part of the run, directly after the decoding's own part.
// next() commits only rows that are not drafts. The keys and values of drafts stay after the session's end, and draw() commits each of them
// when the sampler draws the drafted token. So between two pieces the session is the same as without drafts.
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
  // answer and a text begin (Sampler::begin_answer(), begin_text()).
  Decoding(Session::State& session, Sampler& sampler, const GenerateOptions& options, std::vector<Token> prompt = {});

  // Makes the drafter that the options name; later offers then include drafts. DraftsChosen says who decides the number of drafts. With
  // DraftsChosen::by_caller the caller does: if it offers more rows (`most`) than rows_wanted(), the additional rows are for drafts.
  Status start_drafting(DraftsChosen chosen = DraftsChosen::here);

  // Returns how many rows the next run should compute, without drafts. 0: no run is needed, because the logits after the last token are
  // known.
  [[nodiscard]] std::size_t rows_wanted() const noexcept;
  // Looks up the pending tokens and the rest of the prompt in the prefix index, and takes the pages that the index has for them. Returns
  // the number of tokens whose pages were taken, which need not be computed.
  std::size_t reuse_prefix() noexcept;
  // Adds a part of at most `most` rows to the run, and reserves its pages. Returns false if no part is needed, because the logits are
  // known. If the rows reach the end of the prompt (the sequence's last token), the part draws the next token. Then the part may also have
  // drafts: a chain, and at most `branches` chains that branch off. If there are no pages for drafts, the part has no drafts.
  Result<bool> offer_ready(Run& run, std::size_t most, std::size_t branches = ~std::size_t{0});
  [[nodiscard]] std::size_t part() const noexcept { return part_; }
  // Returns the number of this decoding's parts in the run: part(), and a part for each branch after it.
  [[nodiscard]] std::size_t parts() const noexcept { return 1 + branches_; }
  // Call this after the run was computed. Commits the part and returns the next piece. If there was no part, draws the piece from the known
  // logits. Returns no piece if the prompt is not finished, or if the run failed because of drafts (the next offer has no drafts). After an
  // error the part is undone.
  Result<std::optional<Piece>> next(Run& run);
  // Calls sink(Piece) with the next piece. If drafts were accepted, also calls it with their pieces, which need no further step.
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
  // Returns whether a computed draft was accepted, so that draw() returns the next piece without a step.
  [[nodiscard]] bool is_ahead() const noexcept { return speculation_ && speculation_->is_ahead(); }
  // Drops the keys and values of drafts that were computed but not drawn. Call this if no further piece is wanted.
  void leave() noexcept;
  // The drafts that would be useful in the next offer, for a caller that decides their number (DraftsChosen::by_caller).
  struct DraftWish {
    std::uint32_t most = 0;
    std::uint32_t branches = 0;  // number of chains that may branch off the first chain
    double chance = 0.0;   // probability that a draft is accepted if all drafts before it were; infinite: draft at any cost
    double seconds = 0.0;  // seconds to make one draft
  };
  [[nodiscard]] DraftWish draft_wish() noexcept;
  // Returns the seconds that making the drafts of the last offer took.
  [[nodiscard]] double drafting_seconds() const noexcept { return speculation_ ? speculation_->drafting_seconds() : 0.0; }
  // Returns the error after which no more drafts are made; success if there was no error.
  [[nodiscard]] Status drafting() const noexcept { return speculation_ ? speculation_->status() : Status(); }

  // Returns the end of the prompt that is not yet appended to the session.
  [[nodiscard]] std::span<const Token> rest_of_prompt() const noexcept { return std::span(prompt_).subspan(prompt_done_); }

  // Appends rest_of_prompt() to the session as pending tokens, for a caller (a beam search) that continues the session without this
  // decoding.
  void hand_prompt_over() noexcept;

  [[nodiscard]] FinishReason finish_reason() const noexcept { return text_.finish_reason(); }
  [[nodiscard]] const Figures& figures() const noexcept { return text_.figures(); }

 private:
  Result<bool> offer(Run& run, std::size_t most, std::size_t branches);
  Status make_ready(Run& run) noexcept;
  Result<std::optional<Piece>> take(Run& run);
  Result<Piece> draw();
  // Handles an error of a run. If the run had drafts and was not cancelled, returns true: the drafts may have caused the error, so the next
  // offer has no drafts, and may succeed. Otherwise returns false: the error is final.
  bool retries_without_drafts(const Error& error) noexcept;
  Status accept(Piece& piece);
  void deliver(const Piece& piece) noexcept;
  [[nodiscard]] std::size_t room_for_drafts(std::size_t most) const noexcept;
  void drop_drafts() noexcept;

  Session::State& session_;
  Sampler& sampler_;
  std::vector<Token> prompt_;
  std::size_t prompt_done_ = 0;  // number of tokens of prompt_ that the session has
  std::size_t offered_ = 0;      // number of tokens of prompt_ that the present run computes
  bool in_run_ = false;          // true: the last offer has added a part
  std::size_t part_ = 0;
  std::size_t drafts_ = 0;       // number of drafts in the run
  std::size_t branches_ = 0;     // number of branches, whose parts follow part_
  bool no_drafts_ = false;       // true: the next offer must have no drafts
  Draw draw_;
  TextState text_;
  std::unique_ptr<Speculation> speculation_;  // nullptr: the request has no drafter
};

}  // namespace tessera::detail
