// One request's way from its prompt to its end, a step at a time. Whoever drives it (Session::generate() one alone, a
// scheduler many) asks what it would put into the next run, computes that together with others', and hands the results
// back:
//
//   Run run(engine, all_layers(engine));
//   TESSERA_TRY(const bool in_run, decoding.offer_ready(run, room));  // false: the logits are known, no step is needed
//   run.compute();
//   TESSERA_TRY(std::optional<Piece> piece, decoding.next(run));      // none: there is more of the prompt
//
// After an error the session is as it was before the offer, and the decoding may be asked again.
//
// With a drafter, drafts follow the pending token in the run, and what branches off them are parts right behind its own.
// next() then commits the request's own rows alone; the drafts' keys and values stay behind the session's length, and
// draw() takes them over one by one. So between two pieces the session is what it is without drafts.
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
[[nodiscard]] Status check_sampler(const Sampler& sampler, const Engine::State& engine) noexcept;

class Decoding {
 public:
  // `prompt` follows what the session has. Session and sampler outlive the decoding. Begins the sampler's answer, and its text, or goes on
  // with that (Sampler::begin_answer(), begin_text()).
  Decoding(Session::State& session, Sampler& sampler, const GenerateOptions& options, std::vector<Token> prompt = {});

  // Drafts from now on, as the options say. By the caller: `most` of an offer says how many.
  Status start_drafting(DraftsChosen chosen = DraftsChosen::here);

  // Rows that it has for the next run, drafts not counted. 0: the logits after the last token are known.
  [[nodiscard]] std::size_t rows_wanted() const noexcept;
  // Takes what the prefix index has of the pending tokens and the rest of the prompt, so that it need not be computed; how
  // many tokens.
  std::size_t reuse_prefix() noexcept;
  // Adds a part of at most `most` rows, and makes it ready before anything else is put into the run; false if none is needed. With
  // the last of the prompt, or of the pending tokens, it wants the next token drawn. Drafts are a chain, and at most so many others
  // that branch off it. Where there are no pages for drafts, the part has none.
  Result<bool> offer_ready(Run& run, std::size_t most, std::size_t branches = ~std::size_t{0});
  [[nodiscard]] std::size_t part() const noexcept { return part_; }
  // Parts of the run that are its own, part() being the first.
  [[nodiscard]] std::size_t parts() const noexcept { return 1 + branches_; }
  // What came of the offer, once the run is computed: commits the part and gives the next piece, or undoes it. Without a part the
  // piece is drawn from the logits that are known. None: there is more of the prompt, or the drafts were in the way and the next
  // offer has none.
  Result<std::optional<Piece>> next(Run& run);
  // Gives sink(Piece) the next piece, and those behind it that are known without a step because drafts were right.
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
  // Drafts were right: draw() gives the next piece without a step.
  [[nodiscard]] bool is_ahead() const noexcept { return speculation_ && speculation_->is_ahead(); }
  // No piece will be asked for any more: what is computed ahead goes.
  void leave() noexcept;
  // What the next offer may have beside its own rows, if the caller chooses how many.
  struct DraftWish {
    std::uint32_t most = 0;
    std::uint32_t branches = 0;  // chains that may branch off the first one
    double chance = 0.0;   // that a draft is right if those before it were; infinite: all are wanted
    double seconds = 0.0;  // that one takes to make
  };
  [[nodiscard]] DraftWish draft_wish() noexcept;
  // Seconds that the drafts of the last offer took to make.
  [[nodiscard]] double drafting_seconds() const noexcept { return speculation_ ? speculation_->drafting_seconds() : 0.0; }
  // The error that ended drafting.
  [[nodiscard]] Status drafting() const noexcept { return speculation_ ? speculation_->status() : Status(); }

  // What of the prompt is not the session's yet: of one that is done but for its last token, that token.
  [[nodiscard]] std::span<const Token> rest_of_prompt() const noexcept { return std::span(prompt_).subspan(prompt_done_); }

  // That becomes the session's, pending: who goes on from the session otherwise has the whole sequence.
  void hand_prompt_over() noexcept;

  [[nodiscard]] FinishReason finish_reason() const noexcept { return text_.finish_reason(); }
  [[nodiscard]] const Figures& figures() const noexcept { return text_.figures(); }

 private:
  Result<bool> offer(Run& run, std::size_t most, std::size_t branches);
  Status make_ready(Run& run) noexcept;
  Result<std::optional<Piece>> take(Run& run);
  Result<Piece> draw();
  // A run failed for this reason. true: there were drafts in it; the next offer has none, and may do.
  bool retries_without_drafts(const Error& error) noexcept;
  std::size_t reuse_pending() noexcept;
  [[nodiscard]] std::size_t rows_before_votes() const noexcept;
  Status accept(Piece& piece);
  void deliver(const Piece& piece) noexcept;
  [[nodiscard]] std::size_t room_for_drafts(std::size_t most) const noexcept;
  void drop_drafts() noexcept;

  Session::State& session_;
  Sampler& sampler_;
  std::vector<Token> prompt_;
  std::size_t prompt_done_ = 0;  // of it: tokens that are the session's
  std::size_t offered_ = 0;      // of it, in the present run
  bool in_run_ = false;          // the last offer has a part
  std::size_t part_ = 0;
  std::size_t drafts_ = 0;       // in the part; 0: there are none in the run
  std::size_t branches_ = 0;     // parts behind it
  bool no_drafts_ = false;       // in the next offer
  Draw draw_;
  TextState text_;
  std::unique_ptr<Speculation> speculation_;  // or none
};

}  // namespace tessera::detail
