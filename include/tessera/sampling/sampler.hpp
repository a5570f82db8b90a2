// Logits in, a token out. A Sampler knows nothing of the engine: it is built from a chain of stages (chain.hpp),
// applies them, and draws. The same logits, history, position and seed give the same token on every machine.
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

// A movable handle, used by one thread at a time. After the first call for a vocabulary nothing is allocated per token
// (mirostat's memory of its accepted tokens, and DRY's of those that it counts, grow by doubling).
class Sampler {
 public:
  Sampler() noexcept;  // an empty handle (docs/headers.md)
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  // The error of an option given to the chain, if one was invalid. Every other call reports it too, so that a sampler
  // may be used without looking here first.
  [[nodiscard]] Status status() const noexcept;

  // Draws the token at `position`. logits: [vocabulary]; history: the tokens before it, prompt included, oldest first.
  // Changes nothing that a later draw depends on: tell the sampler with accept() which token the sequence took.
  // ErrorCode::numeric where a logit is NaN, where every logit is -inf, or where a stage left no token. `suppressed`:
  // tokens that no stage sees, as if Chain::deny() came first; a model's own are Tokenizer::suppressed().
  [[nodiscard]] Result<Token> sample(std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
                                     std::span<const Token> suppressed = {}) noexcept;

  // What sample() would draw from: the candidates that remain, with probabilities that add up to 1 (to f32 rounding).
  // Valid until the next call. A greedy sampler gives one candidate of probability 1.
  [[nodiscard]] Result<std::span<const sampling::Candidate>> distribution(std::span<const float> logits,
                                                                          std::span<const Token> history,
                                                                          std::uint64_t position,
                                                                          std::span<const Token> suppressed = {}) noexcept;

  // The sequence took `token` (drawn or forced); rollback(n) undoes the last n accepts. On error nothing has changed.
  // Only stages that remember need these (mirostat, grammars); Session::generate calls them.
  Status accept(Token token) noexcept;
  Status rollback(std::size_t n) noexcept;

  // Call it before the first token of a generation is drawn, with the tokens that the generation follows; generations, samples
  // and schedulers do. It matters to samplers with a stage that follows a text (Stage::follows_text(): grammars, reasoning
  // budgets). If `sequence`, or `sequence` and then `prompt`, ends with the tokens accepted so far, the text goes on. Else, and
  // where a stage says that its text has ended, another text begins, and all accepts are undone. invalid_state: the sampler is
  // empty.
  Status begin_text(std::span<const Token> sequence, std::span<const Token> prompt = {}) noexcept;

  // Says that the next token to be drawn, at `position`, is the first of an answer: penalties count from there (Counted::answer).
  // Generations, samples and schedulers call it when they begin; each of them is an answer of its own. A host that draws by
  // sample() calls it with the number of the prompt's tokens; without it the whole history is the answer. Nothing happens to an
  // empty sampler.
  void begin_answer(std::uint64_t position) noexcept;

  // Checks that the stages serve a tokenizer with this fingerprint. invalid_argument: a stage was made for another one. A zero
  // fingerprint (of a stage, or of an engine without a tokenizer) fits all.
  [[nodiscard]] Status check_tokenizer(const Hash128& fingerprint) const noexcept;

  // Bytes with which the text must go on, whatever the logits are: what the first stage says that knows of any.
  [[nodiscard]] Result<std::string> forced() noexcept;

  // An independent copy: same options, same seed, same memory of accepted tokens.
  [[nodiscard]] Result<Sampler> clone() const noexcept;

  // What the first call takes for a vocabulary of this size; stages that remember may take more.
  [[nodiscard]] static std::size_t workspace_bytes(std::size_t vocabulary) noexcept;

  [[nodiscard]] std::uint64_t seed() const noexcept;
  [[nodiscard]] std::uint32_t stream() const noexcept;
  // Replaces seed and stream, for a copy that shall draw other tokens.
  void reseed(std::uint64_t seed, std::uint32_t stream = 0) noexcept;

  // The sampler in numbers, if it is nothing but greedy, temperature, top_k and top_p stages (in any order, at most
  // kMaxSampleSteps). Then a backend may draw in its place, so that no logits come to the host.
  [[nodiscard]] std::optional<sampling::Recipe> recipe() const noexcept;

 private:
  friend class sampling::Chain;
  explicit Sampler(std::unique_ptr<sampling::SamplerState> state) noexcept;

  std::unique_ptr<sampling::SamplerState> state_;
};

}  // namespace tessera
