// A Sampler draws a token from logits: it applies the stages of its chain (chain.hpp) and then draws. A Sampler does not depend on an
// engine. The same logits, history, position and seed give the same token on every machine.
//
//   auto sampler = tessera::sampling::chain().top_k(40).temperature(0.8f).seed(7).build();
//   auto token = sampler.sample(session.logits(), session.tokens(), session.next_position());
//   const bool added = token && sampler.accept(*token) && session.add_pending(*token);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/sampling/candidates.hpp>
#include <tessera/extend/sampling/recipe.hpp>

namespace tessera {

namespace sampling {
class Chain;
struct SamplerState;
}  // namespace sampling

// A movable handle, used by one thread at a time. After the first call for a vocabulary, drawing a token allocates no memory. Exception:
// some lists grow by doubling: mirostat's of accepted tokens, DRY's of counted tokens, and the text of a stage that follows a text.
class Sampler {
 public:
  Sampler() noexcept;  // an empty handle (docs/headers.md)
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  // Returns the error of the chain's first invalid option, if there is one. All functions that return a Result return the same error,
  // so a sampler may be used without asking here first.
  [[nodiscard]] Status status() const noexcept;

  // Draws the token at `position`. logits: [vocabulary]; history: the tokens before `position`, prompt included, oldest first. `suppressed`
  // are tokens that no stage sees, as if Chain::deny() came first; Tokenizer::suppressed() returns a model's suppressed tokens. Changes
  // nothing that a later draw depends on: call accept() with the token that the sequence took. Errors: numeric, a logit is NaN, every logit
  // is -inf, or a stage left no token; callback_failed, a stage of your own threw.
  [[nodiscard]] Result<Token> sample(std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
                                     std::span<const Token> suppressed = {}) noexcept;

  // Returns the distribution that sample() would draw from: the candidates that remain, with probabilities that add up to 1 (to f32
  // rounding). Valid until the next call. For a greedy sampler this is one candidate of probability 1.
  [[nodiscard]] Result<std::span<const sampling::Candidate>> distribution(std::span<const float> logits,
                                                                          std::span<const Token> history,
                                                                          std::uint64_t position,
                                                                          std::span<const Token> suppressed = {}) noexcept;

  // Tells the stages that the sequence took `token` (drawn or forced). Stages that remember tokens (mirostat, grammars) need this call;
  // Session::generate() makes it. After an error nothing has changed.
  Status accept(Token token) noexcept;
  // Undoes the last n accepts. Errors: invalid_argument, fewer tokens were accepted.
  Status rollback(std::size_t n) noexcept;

  // Decides whether the next generation goes on with the text that the stages have followed so far, or begins another text. Call it before
  // the first token of a generation is drawn, with the tokens that the generation follows; generations, samples and schedulers do. The call
  // matters only if a stage follows a text (Stage::follows_text(): grammars, reasoning budgets). The text goes on if `sequence`, or
  // `sequence` followed by `prompt`, ends with the tokens accepted so far. Otherwise, and if a stage says that its text has ended, another
  // text begins: all accepts are undone. Errors: invalid_state, the sampler is empty.
  Status begin_text(std::span<const Token> sequence, std::span<const Token> prompt = {}) noexcept;

  // Marks the next token to be drawn, at `position`, as the first token of an answer: penalties count from there (Counted::answer).
  // Generations, samples and schedulers call begin_answer() when they begin. A host that draws with sample() calls begin_answer() with the
  // number of the prompt's tokens; without this call the whole history counts as the answer. Does nothing on an empty sampler.
  void begin_answer(std::uint64_t position) noexcept;

  // Checks that the stages fit a tokenizer with this fingerprint. Errors: invalid_argument, a stage was made for another tokenizer. A zero
  // fingerprint (of a stage, or of an engine without a tokenizer) fits every tokenizer.
  [[nodiscard]] Status check_tokenizer(const Hash128& fingerprint) const noexcept;

  // Returns the bytes with which the text must go on, whatever the logits are: the result of the first stage whose Stage::forced() is not
  // empty; empty if there is none.
  [[nodiscard]] Result<std::string> forced() noexcept;

  // Returns an independent copy with the same options, seed and accepted tokens.
  [[nodiscard]] Result<Sampler> clone() const noexcept;

  // Returns the bytes that the first call takes for a vocabulary of this size. Stages that remember may take more.
  [[nodiscard]] static std::size_t workspace_bytes(std::size_t vocabulary) noexcept;

  [[nodiscard]] std::uint64_t seed() const noexcept;
  [[nodiscard]] std::uint32_t stream() const noexcept;
  // Replaces seed and stream, for a copy that shall draw other tokens.
  void reseed(std::uint64_t seed, std::uint32_t stream = 0) noexcept;

  // Returns the sampler as plain numbers, if numbers can describe all its stages (greedy, temperature, top_k and top_p, in any order, at
  // most kMaxSampleSteps; a stage of your own by its step()). A backend may then draw instead, so that the logits stay on the device.
  [[nodiscard]] std::optional<sampling::Recipe> recipe() const noexcept;

 private:
  friend class sampling::Chain;
  explicit Sampler(std::unique_ptr<sampling::SamplerState> state) noexcept;

  std::unique_ptr<sampling::SamplerState> state_;
};

}  // namespace tessera
