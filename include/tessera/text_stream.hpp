// The text side of a generation: tokens in, pieces of text out. It detokenizes, looks for stop strings and stop tokens,
// says when and why the generation ends, and keeps the figures. Session::generate() has one inside; a host that draws
// tokens itself (examples/small/batch_by_hand) makes its own, and gets the same pieces.
#pragma once

#include <memory>
#include <span>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/generation.hpp>

namespace tessera {

class Session;

// A movable handle, used by one thread at a time. It does not need the session once it is made.
class TextStream {
 public:
  // Its text goes on from the session's tokens. The prompt's figures are the session's, counted since its previous
  // TextStream or generation. Of `options`, `stop` does not matter.
  [[nodiscard]] static Result<TextStream> create(Session& session, const GenerateOptions& options = {}) noexcept;
  TextStream() noexcept;  // an empty handle (docs/headers.md)
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  // The piece of the generation's next token. `logits` [vocab] are those that it was drawn from, for
  // GenerateOptions::logprobs; without them that is invalid_argument. invalid_state: the generation has finished. On
  // error nothing has changed.
  [[nodiscard]] Result<Piece> push(Token token, std::span<const float> logits = {}) noexcept;

  [[nodiscard]] FinishReason finish_reason() const noexcept;  // none: it goes on
  [[nodiscard]] Figures figures() const noexcept;

  struct State;

 private:
  explicit TextStream(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
