// Options of speculation (--draft, --draft-model, --draft-heads, --draft-max), and of early exit (--early-exit, --exit-confidence).
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include <tessera/engine.hpp>
#include <tessera/generation.hpp>

struct Options;

enum class DraftBy { nothing, forced, ngram, suffix, early_exit, lookahead, mtp, heads, model };

struct DraftingOptions {
  DraftBy by = DraftBy::nothing;      // the drafter in addition to forced drafts (text that a grammar forces)
  bool none = false;                  // true: no drafts at all, not even forced ones
  std::uint32_t layers = 0;           // early_exit: layers that draft
  std::optional<std::string> model;   // file of the draft model
  std::optional<std::string> heads;   // file or folder of draft heads
  std::string kind = "heads";         // heads: the word after --draft that asked for them: heads, eagle or medusa
  bool uses_default_heads = false;    // the EAGLE head of the default model, which is in the binary
  std::optional<std::uint32_t> most;  // the most drafts of a step
  std::uint32_t branches = 1;
};

// Parses "none", "forced", "ngram", "suffix", "lookahead", "mtp", "heads", "eagle", "medusa", "model" or "early-exit:E" with a number E. Throws UsageError.
void parse_draft(const std::string& text, DraftingOptions& into);
// Checks the options against each other. `has_default_model`: no other model was named. Throws UsageError.
void check_drafting(DraftingOptions& drafting, bool has_default_model);

// Checks --early-exit and --exit-confidence against the other options, and sets options.early_exit. Throws UsageError.
void check_early_exit(Options& options);

// Returns the options of speculation, from the options of the command line. With a grammar, text that the grammar forces (it allows only
// this text) is drafted too, unless drafting.none. Loads the draft model if the options name one. Throws if the drafter cannot work for the
// engine.
[[nodiscard]] tessera::SpeculateOptions speculation(const Options& options, const tessera::Engine& engine, std::stop_token stop);
