// One request's way from its prompt to its end, a step at a time. Whoever drives it (Session::generate() one alone, a
// scheduler many) asks what it would put into the next run, computes that together with others', and hands the results
// back:
//
//   Run run(engine, all_layers(engine));
//   TESSERA_TRY(const bool in_run, decoding.offer(run, room));
//   if (!in_run) return decoding.draw();                           // the logits are known: no step is needed
//   TESSERA_TRY_STATUS(make_ready(run, decoding.part()));
//   run.compute();
//   TESSERA_TRY(std::optional<Piece> piece, decoding.take(run));   // none: there is more of the prompt
//
// After an error the session is as it was before the offer, and the decoding may be asked again.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <tessera/sampling/sampler.hpp>

#include "decoding/text_state.hpp"
#include "engine/run.hpp"

namespace tessera::detail {

class Decoding {
 public:
  // `prompt` follows what the session has. Session and sampler outlive the decoding.
  Decoding(Session::State& session, Sampler& sampler, const GenerateOptions& options, std::vector<Token> prompt = {});

  // Rows that it has for the next run. 0: the logits after the last token are known.
  [[nodiscard]] std::size_t rows_wanted() const noexcept;
  // Takes what the prefix index has of the rest of the prompt, so that it need not be computed; how many tokens.
  std::size_t reuse_prefix() noexcept;
  // Adds a part of at most `most` rows; false if none is needed. With the last of the prompt, or of the pending tokens, it
  // wants the next token drawn.
  Result<bool> offer(Run& run, std::size_t most);
  [[nodiscard]] std::size_t part() const noexcept { return part_; }
  // What came of the part: commits it and gives the next piece, or undoes it.
  Result<std::optional<Piece>> take(Run& run);
  // The next piece, from the logits that the session knows.
  Result<Piece> draw();

  // What of the prompt is not the session's yet: of one that is done but for its last token, that token.
  [[nodiscard]] std::vector<Token> last_of_prompt() const {
    return {prompt_.begin() + static_cast<std::ptrdiff_t>(prompt_done_), prompt_.end()};
  }

  [[nodiscard]] FinishReason finish_reason() const noexcept { return text_.finish_reason(); }
  [[nodiscard]] const Figures& figures() const noexcept { return text_.figures(); }

 private:
  Status accept(Piece& piece);
  void deliver(Token token) noexcept;

  Session::State& session_;
  Sampler& sampler_;
  std::vector<Token> prompt_;
  std::size_t prompt_done_ = 0;  // of it: tokens that are the session's
  std::size_t offered_ = 0;      // of it, in the present run
  std::size_t part_ = 0;
  Draw draw_;
  TextState text_;
};

}  // namespace tessera::detail
