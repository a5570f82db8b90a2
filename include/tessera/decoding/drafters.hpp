// The library's drafters: objects that guess the next tokens for speculation (SpeculateOptions). A drafter keeps nothing of a generation,
// so make it once and use it for any number of generations:
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
  std::size_t shortest = 2;  // fewest tokens at the history's end that must have occurred before
  std::size_t longest = 8;   // most tokens at the history's end that are looked for
};
// Makes a drafter that looks for an earlier occurrence of the history's last tokens, and drafts the tokens that followed there (prompt
// lookup; Saxena 2023). Of all occurrences, the longest match is taken; among equally long matches, the latest. Costs next to nothing, and
// pays where text repeats its input: summaries, code.
// Errors: invalid_argument, `shortest` is 0 or above `longest`, or `longest` is above 64.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> ngram_drafter(const NgramOptions& options = {}) noexcept;

struct SuffixOptions {
  std::size_t shortest = 1;   // fewest tokens at the history's end that must have occurred before
  float least = 0.1f;         // drafts end where the product of their probabilities (shares of occurrences in the history) falls below `least`
};
// Makes a drafter that takes the longest suffix of the history that has occurred before, and drafts the tokens that followed it most often.
// It keeps the history in a suffix automaton (Blumer et al. 1985) with counts, as suffix decoding does (Oliaro et al. 2024), which takes a
// few hundred bytes for each token of the history. Errors: invalid_argument, `shortest` is 0 or `least` is not in [0, 1].
[[nodiscard]] Result<std::shared_ptr<const Drafter>> suffix_drafter(const SuffixOptions& options = {}) noexcept;

struct LookaheadOptions {
  std::size_t ngram = 4;  // tokens of an n-gram of the pool, 2 to 16
};
// Makes a drafter that drafts the model's own guesses from earlier steps (lookahead decoding; Fu et al. 2024). A step with drafts also
// yields the likeliest token after each draft, and the next step takes these tokens as drafts (Jacobi iteration; Santilli et al. 2023).
// N-grams of such guesses are collected in a pool; if an n-gram of the pool continues the text, it is drafted first. Unlike the paper's
// method, this drafter computes no rows except the drafts, and follows one branch. Needs no second model and no repetition in the text.
// Most guesses are wrong, so it pays only where a few more rows in a step cost almost no time. Errors: invalid_argument, `ngram` is not 2
// to 16.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> lookahead_drafter(const LookaheadOptions& options = {}) noexcept;

// Makes a drafter for generations with a grammar. Where the grammar allows only one text (Sampler::forced()), the drafter drafts this text,
// cut into tokens by the tokenizer. Exception: the last token of the text is not drafted, because the model may draw a longer token that
// begins with the same characters. Where the grammar leaves a choice, the drafter `otherwise` drafts, if it is set.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> forced_drafter(std::shared_ptr<const Drafter> otherwise = {}) noexcept;

// Makes a drafter that drafts with a smaller model of the same vocabulary, the engine `draft` (Leviathan, Kalman, Matias 2023). Each
// generation makes a session of `draft` with the options `session`; beyond the context of these options nothing is drafted.
// Drafter::start() fails with invalid_argument if the two models have different vocabularies: different fingerprints or, if one has no
// fingerprint, different sizes.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> model_drafter(const Engine& draft,
                                                                   const SessionOptions& session = {}) noexcept;

// Makes a drafter that drafts with the model's own first `layers` layers and its output matrix (Elhoushi et al., LayerSkip, 2024). These
// layers use the generation's own keys and values, so the only memory needed is a row of logits. Pays for models that were trained for
// early exits. Drafter::start() fails with invalid_argument unless 1 <= layers < the model's number of layers.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> early_exit_drafter(std::uint32_t layers) noexcept;

// Makes a drafter that drafts with the model's draft heads (ModelSpec::draft_heads). There are two sorts.
// - An MTP head (multi-token prediction; DeepSeek-AI 2024, Gloeckle et al. 2024) is a further layer in the model's own file. It was trained
//   to guess the token after the next from two inputs: the model's last hidden state, and the next token. Further drafts take the head's
//   own hidden state instead of the model's. EngineOptions::mtp loads the head.
// - Medusa and EAGLE heads are in a file of their own, which EngineOptions::draft_heads loads.
// Drafter::start() fails with invalid_argument if the engine has loaded no heads.
[[nodiscard]] Result<std::shared_ptr<const Drafter>> head_drafter() noexcept;

}  // namespace tessera
