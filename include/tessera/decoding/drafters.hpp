// The library's drafters, each made once and then given to as many generations as wanted:
//
//   session.generate(sampler, {.max_tokens = 200, .speculate = {.drafter = *tessera::ngram_drafter()}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tessera/core/result.hpp>
#include <tessera/decoding/drafter.hpp>
#include <tessera/engine.hpp>

namespace tessera {

struct NgramOptions {
  std::size_t shortest = 2;  // tokens at the history's end that must have occurred before
  std::size_t longest = 8;   // that are looked for at most
};
// What followed the last time that the history's end occurred in the history (prompt lookup; Saxena 2023). The longest
// end counts, of equal ones the latest. It costs next to nothing, and pays where text repeats its input: summaries, code.
// invalid_argument: shortest above longest, or 0, or longest above 64.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> ngram_drafter(const NgramOptions& options = {}) noexcept;

struct SuffixOptions {
  std::size_t shortest = 1;   // tokens at the history's end that must have occurred before
  float least = 0.1f;         // drafts end where their chance, counted in the history, falls below this
};
// What followed the history's longest repeated end most often, at any length: a suffix automaton (Blumer et al. 1985)
// of the history, with counts, as in suffix decoding (Oliaro et al. 2024). A few hundred bytes for each token of the
// history. invalid_argument: shortest is 0, or least not in [0, 1].
[[nodiscard]] Result<std::shared_ptr<const Drafter>> suffix_drafter(const SuffixOptions& options = {}) noexcept;

struct LookaheadOptions {
  std::size_t ngram = 4;  // tokens of an n-gram of the pool, 2 to 16
};
// What the model itself has guessed further on, while it looked at wrong drafts (lookahead decoding; Fu et al. 2024). The
// model's likeliest tokens behind the drafts of one step are drafts of the next (Jacobi iteration; Santilli et al. 2023), and
// the n-grams on their way are a pool that drafts come from first. Unlike the paper's, it has no rows of its own beside the
// drafts, and one branch of them. No second model, and nothing that must repeat; but it pays only where rows are next to free, since most guesses are
// wrong. invalid_argument: n-grams of other lengths.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> lookahead_drafter(const LookaheadOptions& options = {}) noexcept;

// What a grammar leaves no choice about (Sampler::forced()), in the tokens that the tokenizer makes of it; where it leaves one,
// what `otherwise` drafts, if there is such. The last token of what is forced is no draft: the model may write a longer one
// there, that goes on behind it.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> forced_drafter(std::shared_ptr<const Drafter> otherwise = {}) noexcept;

// A smaller model that has the same tokenizer: each generation has a session of it, kept in step with its own
// (Leviathan, Kalman, Matias 2023). It drafts nothing beyond the context of `session`. start() fails with
// invalid_argument if the vocabularies differ, by fingerprint or, without one, in size.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> model_drafter(const Engine& draft,
                                                                   const SessionOptions& session = {}) noexcept;

// The same model's first `layers` layers and its head, with the target's own keys and values (Elhoushi et al., LayerSkip,
// 2024): no memory but a row of logits, and worth it for models that were trained to leave early. start() fails with
// invalid_argument unless 1 <= layers < the model's.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> early_exit_drafter(std::uint32_t layers) noexcept;

// The model's MTP head (multi-token prediction; DeepSeek-AI 2024, Gloeckle et al. 2024): a layer that the file has behind the model's and
// that was trained with it to guess the token after the next, from the model's last hidden state and the next token. Further
// drafts come from the head's own hidden state. The engine has loaded it: start() fails with invalid_argument if not
// (EngineOptions::mtp), or if the file has none.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> mtp_drafter() noexcept;

}  // namespace tessera
