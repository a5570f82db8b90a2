// The library's drafters. Make a drafter once and use it for any number of generations:
//
//   auto text = session.generate(sampler, {.max_tokens = 200, .speculate = {.drafter = *tessera::ngram_drafter()}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tessera/core/result.hpp>
#include <tessera/engine.hpp>
#include <tessera/extend/decoding/drafter.hpp>

namespace tessera {

struct NgramOptions {
  std::size_t shortest = 2;  // tokens at the history's end that must have occurred before
  std::size_t longest = 8;   // most tokens at the history's end to look for
};
// Drafts the tokens that followed when the history's last tokens occurred before (prompt lookup; Saxena 2023). Takes the longest match;
// among equally long matches, the latest. Costs next to nothing, and pays where text repeats its input: summaries, code.
// Errors: invalid_argument, `shortest` is 0 or above `longest`, or `longest` is above 64.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> ngram_drafter(const NgramOptions& options = {}) noexcept;

struct SuffixOptions {
  std::size_t shortest = 1;   // tokens at the history's end that must have occurred before
  float least = 0.1f;         // drafts end where the product of their probabilities (shares of occurrences in the history) falls below `least`
};
// Drafts the tokens that most often followed the longest suffix of the history that occurred before. Uses a suffix automaton (Blumer et
// al. 1985) with counts, as suffix decoding does (Oliaro et al. 2024). Takes a few hundred bytes for each token of the history. Errors:
// invalid_argument, `shortest` is 0 or `least` is not in [0, 1].
[[nodiscard]] Result<std::shared_ptr<const Drafter>> suffix_drafter(const SuffixOptions& options = {}) noexcept;

struct LookaheadOptions {
  std::size_t ngram = 4;  // tokens of an n-gram of the pool, 2 to 16
};
// Drafts the model's own earlier guesses (lookahead decoding; Fu et al. 2024). The model's likeliest tokens after the drafts of one step
// are drafts of the next step (Jacobi iteration; Santilli et al. 2023). N-grams of these guesses are collected in a pool, and drafts come
// from the pool first. Unlike the paper's method, this drafter computes no rows except the drafts, and follows one branch. Needs no second
// model and no repetition, but pays only where further rows are nearly free, because most guesses are wrong. Errors: invalid_argument,
// `ngram` is not 2 to 16.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> lookahead_drafter(const LookaheadOptions& options = {}) noexcept;

// Drafts the text that a grammar forces (Sampler::forced()), cut into tokens by the tokenizer. Where the grammar leaves a choice, the
// drafter `otherwise` drafts, if it is set. The last token of a forced text is not drafted, because the model may write a longer token
// there.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> forced_drafter(std::shared_ptr<const Drafter> otherwise = {}) noexcept;

// Drafts with a smaller model that has the same tokenizer (Leviathan, Kalman, Matias 2023). Each generation has its own session of
// the smaller model. Nothing is drafted beyond the context of `session`. Drafter::start() fails with invalid_argument if the vocabularies
// differ: in their fingerprints or, if one has no fingerprint, in size.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> model_drafter(const Engine& draft,
                                                                   const SessionOptions& session = {}) noexcept;

// Drafts with the model's own first `layers` layers and its output matrix, over the same keys and values (Elhoushi et al., LayerSkip,
// 2024). Takes the memory of a row of logits. Pays for models that were trained for early exits. Drafter::start() fails with
// invalid_argument unless 1 <= layers < the model's layers.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> early_exit_drafter(std::uint32_t layers) noexcept;

// Drafts with the model's draft heads (ModelSpec::draft_heads). An MTP head (multi-token prediction; DeepSeek-AI 2024, Gloeckle et al.
// 2024) is a further layer of the file that was trained to guess the token after the next from the model's last hidden state and the
// next token. Further drafts come from the head's own hidden state. Medusa and EAGLE heads are in a file of their own
// (EngineOptions::draft_heads). Drafter::start() fails with invalid_argument if the engine has loaded no heads (EngineOptions::mtp,
// EngineOptions::draft_heads).
[[nodiscard]] Result<std::shared_ptr<const Drafter>> head_drafter() noexcept;

}  // namespace tessera
