// Several texts after one prompt: --samples, --best-of and --beams.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <tessera/decoding/beam_search.hpp>
#include <tessera/generation.hpp>

struct Options;

struct SeveralOptions {
  std::optional<std::uint32_t> samples, best_of, beams;  // at most one of the three
  std::optional<float> length_penalty;
  std::optional<std::uint32_t> results;
  std::optional<tessera::EarlyStopping> early_stopping;

  [[nodiscard]] bool asked() const noexcept { return samples || best_of || beams; }
};

// Checks the options against each other. Throws UsageError.
void check_several(const Options& options);

// The prompt's text and tokens, and the session that has read the tokens.
struct PromptRead {
  const tessera::Session& session;
  const std::string& text;
  std::span<const tessera::Token> tokens;
};

// Print several texts. Errors are thrown. `seed`: the sampler's seed, if it draws.
void write_samples(const Options& options, const PromptRead& prompt, const tessera::Sampler& sampler,
                   const tessera::GenerateOptions& generate, std::optional<std::uint64_t> seed);
void write_beams(const Options& options, const PromptRead& prompt, const tessera::GenerateOptions& generate);
