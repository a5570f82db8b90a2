// The text side of a generation: tokens in, pieces of text out. A TextStream detokenizes, looks for stop strings and stop tokens, says when
// and why the generation ends, and keeps the figures. Session::generate() has one inside. A host that draws tokens itself
// (examples/small/batch_by_hand) makes its own, and gets the same pieces.
#pragma once

#include <memory>
#include <span>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/generation.hpp>

namespace tessera {

class Session;

// A movable handle, which does not need the session once it is made. Threads: one at a time.
//
//   auto stream = TextStream::create(session, {.max_tokens = 100});
//   while (stream->finish_reason() == FinishReason::none) {
//     auto piece = stream->push(next_token());                      // a token that your own code draws
//     if (!piece) break;
//     std::fputs(piece->text.c_str(), stdout);
//   }
class TextStream {
 public:
  // Begins a stream whose text goes on from the session's tokens. The figures of the prompt are the session's since its previous
  // TextStream or generation. options.stop and options.speculate are ignored.
  [[nodiscard]] static Result<TextStream> create(Session& session, const GenerateOptions& options = {}) noexcept;
  TextStream() noexcept;  // an empty handle (docs/headers.md)
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  // Returns the piece of the generation's next token. `logits` [vocab] are those that the token was drawn from; GenerateOptions::logprobs
  // needs them. Errors: invalid_argument, logprobs without logits; invalid_state, the generation has finished. After an error nothing
  // has changed.
  [[nodiscard]] Result<Piece> push(Token token, std::span<const float> logits = {}) noexcept;

  [[nodiscard]] FinishReason finish_reason() const noexcept;  // none: the generation goes on
  [[nodiscard]] Figures figures() const noexcept;

  struct State;

 private:
  explicit TextStream(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
