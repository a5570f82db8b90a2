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
  std::optional<std::uint32_t> samples, best_of, beams;  // one of the three at most
  std::optional<float> length_penalty;
  std::optional<std::uint32_t> results;
  std::optional<tessera::EarlyStopping> early_stopping;

  [[nodiscard]] bool asked() const noexcept { return samples || best_of || beams; }
};

// What one option alone cannot see. Throws UsageError.
void check_several(const Options& options);

// The prompt, as it was given and as the session has read it.
struct PromptRead {
  const tessera::Session& session;
  const std::string& text;
  std::span<const tessera::Token> tokens;
};

// Both print; errors are thrown. `seed`: what the sampler draws with, if it draws.
void write_samples(const Options& options, const PromptRead& prompt, const tessera::Sampler& sampler,
                   const tessera::GenerateOptions& generate, std::optional<std::uint64_t> seed);
void write_beams(const Options& options, const PromptRead& prompt, const tessera::GenerateOptions& generate);
