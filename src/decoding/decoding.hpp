// Decodes one request from its prompt to its end, a step at a time. A run (engine/run/run.hpp) computes rows of several sequences
// together; the rows of one sequence in a run are called a part of the run. The caller (Session::generate() for one request, a scheduler
// for many) has the decoding add its part to a run, computes the run, and has the decoding take the results:
//
//   Run run(engine, all_layers(engine));
//   TESSERA_TRY(const bool in_run, decoding.offer_ready(run, room));  // false: the logits are known, no step is needed
//   run.compute();
//   TESSERA_TRY(std::optional<Piece> piece, decoding.next(run));      // none: the prompt is not done
//
// After an error the session is as it was before the offer, and the decoding may be asked again.
//
// With a drafter, drafts follow the pending token (the last token of the sequence, which is not computed yet) in the decoding's part.
// If drafts branch, each branch is a further part of the run, right behind the decoding's own. next() commits only rows that are no
// drafts. The drafts' keys and values stay behind the session's length, and draw() commits them one by one, as the sampler draws the
// drafted tokens. So between two pieces the session is as it would be without drafts.
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

// Checks that the sampler can draw the engine's tokens.
[[nodiscard]] Status check_sampler(const Sampler& sampler, const Engine& engine) noexcept;

class Decoding {
 public:
  // `prompt` follows the session's tokens. Session and sampler must outlive the decoding. Begins the sampler's answer and text
  // (Sampler::begin_answer(), begin_text()).
  Decoding(Session::State& session, Sampler& sampler, const GenerateOptions& options, std::vector<Token> prompt = {});

  // Makes the drafter that the options name; later offers have drafts. With DraftsChosen::by_caller, the caller chooses their number:
  // the rows of an offer (`most`) beyond rows_wanted() are for drafts.
  Status start_drafting(DraftsChosen chosen = DraftsChosen::here);

  // Returns the rows for the next run, without drafts. 0: the logits after the last token are known.
  [[nodiscard]] std::size_t rows_wanted() const noexcept;
  // Takes the pages that the prefix index has for the pending tokens and the rest of the prompt. Returns how many tokens they hold.
  std::size_t reuse_prefix() noexcept;
  // Adds a part of at most `most` rows to the run, and makes it ready: reserves the pages that its rows need. Returns false if no part is
  // needed. A part that ends with the last token of the sequence, or of the prompt, asks for the next token, and may have drafts: a chain,
  // and at most `branches` other chains that branch off. If there are no pages for drafts, the part has none.
  Result<bool> offer_ready(Run& run, std::size_t most, std::size_t branches = ~std::size_t{0});
  [[nodiscard]] std::size_t part() const noexcept { return part_; }
  // Returns how many parts of the run belong to this decoding; part() is the first.
  [[nodiscard]] std::size_t parts() const noexcept { return 1 + branches_; }
  // Call it when the run is computed. Commits the part and returns the next piece; without a part, draws the piece from the known
  // logits. Returns none if the prompt is not done, or if the run failed with drafts: the next offer then has no drafts. After an
  // error the part is undone.
  Result<std::optional<Piece>> next(Run& run);
  // Calls sink(Piece) with the next piece, and with the pieces of accepted drafts behind it, which need no step.
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
  // Returns whether a draft was accepted, so that draw() gives the next piece without a step.
  [[nodiscard]] bool is_ahead() const noexcept { return speculation_ && speculation_->is_ahead(); }
  // Drops the keys and values of drafts that were computed and not drawn. Call it if no further piece will be asked for.
  void leave() noexcept;
  // The drafts that the next offer may have, for a caller that chooses their number.
  struct DraftWish {
    std::uint32_t most = 0;
    std::uint32_t branches = 0;  // chains that may branch off the first chain
    double chance = 0.0;   // probability that a draft is accepted if the ones before it were; infinite: all drafts are wanted
    double seconds = 0.0;  // time to make one draft
  };
  [[nodiscard]] DraftWish draft_wish() noexcept;
  // Returns the seconds that making the drafts of the last offer took.
  [[nodiscard]] double drafting_seconds() const noexcept { return speculation_ ? speculation_->drafting_seconds() : 0.0; }
  // Returns the error that ended drafting.
  [[nodiscard]] Status drafting() const noexcept { return speculation_ ? speculation_->status() : Status(); }

  // Returns the tokens of the prompt that the session does not have yet.
  [[nodiscard]] std::span<const Token> rest_of_prompt() const noexcept { return std::span(prompt_).subspan(prompt_done_); }

  // Appends rest_of_prompt() to the session, as pending tokens, for a caller that goes on from the session in another way.
  void hand_prompt_over() noexcept;

  [[nodiscard]] FinishReason finish_reason() const noexcept { return text_.finish_reason(); }
  [[nodiscard]] const Figures& figures() const noexcept { return text_.figures(); }

 private:
  Result<bool> offer(Run& run, std::size_t most, std::size_t branches);
  Status make_ready(Run& run) noexcept;
  Result<std::optional<Piece>> take(Run& run);
  Result<Piece> draw();
  // Call it with the error of a run. If the run had drafts and was not cancelled, returns true: the next offer has no drafts, and may
  // succeed.
  bool retries_without_drafts(const Error& error) noexcept;
  Status accept(Piece& piece);
  void deliver(const Piece& piece) noexcept;
  [[nodiscard]] std::size_t room_for_drafts(std::size_t most) const noexcept;
  void drop_drafts() noexcept;

  Session::State& session_;
  Sampler& sampler_;
  std::vector<Token> prompt_;
  std::size_t prompt_done_ = 0;  // tokens of prompt_ that the session has
  std::size_t offered_ = 0;      // tokens of prompt_ in the present run
  bool in_run_ = false;          // the last offer has a part
  std::size_t part_ = 0;
  std::size_t drafts_ = 0;       // drafts in the part; 0: the run has none
  std::size_t branches_ = 0;     // parts of branches, behind part_
  bool no_drafts_ = false;       // the next offer has no drafts
  Draw draw_;
  TextState text_;
  std::unique_ptr<Speculation> speculation_;  // nullptr: no drafter
};

}  // namespace tessera::detail
