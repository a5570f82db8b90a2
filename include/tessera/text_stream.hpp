// A TextStream turns the drawn tokens of a generation into pieces of text: it detokenizes, finds stop strings and stop tokens, says when
// and why the generation ends, and counts the generation's figures. Session::generate() does the same by itself, without a TextStream. A host
// that draws tokens itself (examples/small/batch_by_hand) makes a TextStream, and gets the same pieces.
//
//   auto text = tessera::TextStream::create(session, {.max_tokens = 100});
//   while (text->finish_reason() == tessera::FinishReason::none) {
//     const tessera::Token token = *sampler.sample(session.logits(), session.tokens(), session.next_position());
//     std::fputs(text->push(token)->text.c_str(), stdout);
//     if (!session.append({&token, 1})) break;
//   }
#pragma once

#include <memory>
#include <span>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/generation.hpp>

namespace tessera {

class Session;

// A movable handle, used by one thread at a time. After create() the session is not needed.
class TextStream {
 public:
  // Makes a stream for the text that follows the session's tokens. The prompt's figures count the tokens that the session has computed
  // since its previous TextStream or generation. `options.stop` and `options.speculate` have no effect, because the stream computes
  // nothing.
  [[nodiscard]] static Result<TextStream> create(Session& session, const GenerateOptions& options = {}) noexcept;
  TextStream() noexcept;  // an empty handle (docs/headers.md)
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  // Takes the generation's next token and returns its piece. `logits` [vocab]: the logits from which the token was drawn; only needed for
  // GenerateOptions::logprobs. Errors, after which nothing has changed: invalid_argument, logprobs without logits; invalid_state, the
  // generation has finished.
  [[nodiscard]] Result<Piece> push(Token token, std::span<const float> logits = {}) noexcept;

  [[nodiscard]] FinishReason finish_reason() const noexcept;  // none: the generation goes on
  [[nodiscard]] Figures figures() const noexcept;

  struct State;

 private:
  explicit TextStream(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
