// Speculation, as --draft, --draft-model and --draft-max ask for it.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include <tessera/engine.hpp>
#include <tessera/generation.hpp>

struct Options;

enum class DraftBy { nothing, forced, ngram, suffix, early_exit, lookahead, mtp, model };

struct DraftingOptions {
  DraftBy by = DraftBy::nothing;      // beside what a grammar forces
  bool none = false;                  // not even that
  std::uint32_t layers = 0;           // of an early exit
  std::optional<std::string> model;   // a file
  std::optional<std::uint32_t> most;  // in a step
  std::uint32_t branches = 1;
};

// "none", "forced", "ngram", "suffix", "lookahead", "mtp", "model" or "early-exit:E", E being a number. Throws UsageError.
void parse_draft(const std::string& text, DraftingOptions& into);
// What one option alone cannot see. Throws UsageError.
void check_drafting(DraftingOptions& drafting);

// What a grammar forces is drafted where there is one, unless that is forbidden. Loads the draft model, if there is one. Fails where the drafter cannot work for the engine.
[[nodiscard]] tessera::SpeculateOptions speculation(const Options& options, const tessera::Engine& engine, std::stop_token stop);
