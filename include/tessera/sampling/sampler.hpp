// A Sampler draws a token from logits: it applies the stages of its chain (chain.hpp), and then draws one of the candidates that are left.
// It does not depend on an engine. The same logits, history, position and seed give the same token on every machine.
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

// A movable handle, used by one thread at a time. The first call for a vocabulary allocates memory; after it, drawing a token allocates
// none. Exception: stages that keep the tokens of the text have lists that grow by doubling (mirostat, DRY, grammars).
class Sampler {
 public:
  Sampler() noexcept;  // an empty handle (docs/headers.md)
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  // Returns the error of the chain's first invalid option; success if all are valid. You need not call status(): all functions that return
  // a Result return the same error.
  [[nodiscard]] Status status() const noexcept;

  // Draws the token at `position`. logits: [vocabulary]. history: all tokens before `position`, prompt included, oldest first. suppressed:
  // tokens that no stage sees, as if the chain began with deny() of them; pass Tokenizer::suppressed(). sample() only draws: the sampler's
  // state does not change until you call accept() with the token that the sequence really takes. Errors: numeric, a logit is NaN, every
  // logit is -inf, or the stages left no token; callback_failed, a stage of your own threw.
  [[nodiscard]] Result<Token> sample(std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
                                     std::span<const Token> suppressed = {}) noexcept;

  // Returns the distribution from which sample() would draw: the candidates that the stages leave, with their probabilities, whose sum is 1
  // (up to f32 rounding). A greedy sampler has one candidate, of probability 1. Valid until the sampler's next call.
  [[nodiscard]] Result<std::span<const sampling::Candidate>> distribution(std::span<const float> logits,
                                                                          std::span<const Token> history,
                                                                          std::uint64_t position,
                                                                          std::span<const Token> suppressed = {}) noexcept;

  // Tells the stages that `token`, drawn or forced, is now part of the sequence. Stages that remember tokens (mirostat, grammars) need this
  // call. Session::generate() makes it by itself. After an error nothing has changed.
  Status accept(Token token) noexcept;
  // Undoes the last n accepts. Errors: invalid_argument, fewer tokens were accepted.
  Status rollback(std::size_t n) noexcept;

  // Prepares for the next generation: decides whether it goes on with the text that the stages have followed so far, or begins another
  // text. Matters only if a stage follows a text (Stage::follows_text(): grammars, reasoning budgets). Generations, samples and schedulers
  // call it by themselves; if you draw with sample(), call it before the first draw, with the tokens that come before.
  // The text goes on if `sequence` followed by `prompt` ends with all tokens that were accepted so far. Exception: if a stage says that its
  // text has ended, the text does not go on. If the text does not go on, another text begins: all accepts are undone.
  // Errors: invalid_state, the sampler is empty.
  Status begin_text(std::span<const Token> sequence, std::span<const Token> prompt = {}) noexcept;

  // Says that the token to be drawn next, at `position`, is the first of an answer: with Counted::answer, penalties count only tokens from
  // `position` on. Generations, samples and schedulers call it by themselves. If you draw with sample(), call it with the number of the prompt's
  // tokens; without this call the whole history counts as the answer. Does nothing on an empty sampler.
  void begin_answer(std::uint64_t position) noexcept;

  // Checks that each stage fits the tokenizer with this fingerprint (a grammar, for example, was made for one vocabulary). Errors:
  // invalid_argument, a stage was made for another tokenizer. A stage with fingerprint zero fits every tokenizer, and every stage fits the
  // fingerprint zero (an engine without a tokenizer).
  [[nodiscard]] Status check_tokenizer(const Hash128& fingerprint) const noexcept;

  // Returns the bytes with which the text must go on, whatever the logits are, as a grammar may know them. It is the first result of a
  // stage's Stage::forced() that is not empty; empty if no stage knows such bytes.
  [[nodiscard]] Result<std::string> forced() noexcept;

  // Returns an independent copy with the same options, seed and accepted tokens.
  [[nodiscard]] Result<Sampler> clone() const noexcept;

  // Returns the bytes that the first draw from a vocabulary of this size allocates. Stages that remember tokens may take more.
  [[nodiscard]] static std::size_t workspace_bytes(std::size_t vocabulary) noexcept;

  [[nodiscard]] std::uint64_t seed() const noexcept;
  [[nodiscard]] std::uint32_t stream() const noexcept;
  // Replaces seed and stream, for a copy that is to draw other tokens.
  void reseed(std::uint64_t seed, std::uint32_t stream = 0) noexcept;

  // Returns the sampler's stages as plain numbers, with which a backend can draw tokens itself, so that the logits stay on the device. Returns
  // nullopt if there are more than kMaxSampleSteps stages, if numbers cannot describe a stage, or if status() is an error. Numbers describe
  // greedy, temperature, top_k, top_p, and stages of your own that have a step(), in any order.
  [[nodiscard]] std::optional<sampling::Recipe> recipe() const noexcept;

 private:
  friend class sampling::Chain;
  explicit Sampler(std::unique_ptr<sampling::SamplerState> state) noexcept;

  std::unique_ptr<sampling::SamplerState> state_;
};

}  // namespace tessera
