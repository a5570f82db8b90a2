#include "drafting.hpp"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include <tessera/decoding/drafters.hpp>

#include "constraint.hpp"
#include "failure.hpp"
#include "model.hpp"
#include "options.hpp"

void parse_draft(const std::string& text, DraftingOptions& into) {
  constexpr std::string_view kEarly = "early-exit:";
  into.none = text == "none";
  if (into.none) {
    into.by = DraftBy::nothing;
  } else if (text == "forced") {
    into.by = DraftBy::forced;
  } else if (text == "ngram") {
    into.by = DraftBy::ngram;
  } else if (text == "suffix") {
    into.by = DraftBy::suffix;
  } else if (text == "lookahead") {
    into.by = DraftBy::lookahead;
  } else if (text == "model") {
    into.by = DraftBy::model;
  } else if (text == "mtp") {
    into.by = DraftBy::mtp;
  } else if (text == "heads" || text == "eagle" || text == "medusa") {
    into.by = DraftBy::heads;
    into.kind = text;
  } else if (text.starts_with(kEarly)) {
    into.by = DraftBy::early_exit;
    const char *begin = text.data() + kEarly.size(), *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, into.layers);
    if (error != std::errc() || stop != end || into.layers == 0) {
      throw UsageError(fmt::format("--draft: \"{}\": say after how many layers, such as early-exit:8", text));
    }
  } else {
    throw UsageError(fmt::format("--draft: \"{}\" is not one of none|forced|ngram|suffix|early-exit:E|lookahead|mtp|heads|eagle|medusa|model", text));
  }
}

void check_drafting(DraftingOptions& drafting, bool has_default_model) {
  if (drafting.model && drafting.by == DraftBy::nothing) drafting.by = DraftBy::model;
  if (drafting.by == DraftBy::model && !drafting.model) throw UsageError("--draft model needs --draft-model FILE");
  if (drafting.model && drafting.by != DraftBy::model) throw UsageError("--draft-model goes with --draft model, and no other");
  if (drafting.heads && drafting.by == DraftBy::nothing && !drafting.none) drafting.by = DraftBy::heads;
  drafting.uses_default_heads = drafting.kind == "eagle" && !drafting.heads && has_default_model;
  if (drafting.by == DraftBy::heads && !drafting.heads && !drafting.uses_default_heads) {
    throw UsageError(fmt::format("--draft {} needs --draft-heads FILE (only the default model has heads of its own: --draft eagle)", drafting.kind));
  }
  if (drafting.heads && drafting.by != DraftBy::heads) throw UsageError("--draft-heads goes with --draft heads, eagle or medusa, and no other");
  if (drafting.branches == 0 || drafting.branches > 16) {
    throw UsageError(fmt::format("--draft-branches: {} branches; choose 1 to 16", drafting.branches));
  }
  if (drafting.branches > 1 && drafting.by != DraftBy::suffix && drafting.by != DraftBy::heads) {
    throw UsageError("--draft-branches goes with --draft suffix and with draft heads: other drafts are a chain");
  }
  if (!drafting.most) return;
  if (drafting.by == DraftBy::nothing) throw UsageError("--draft-max needs --draft, --draft-model or --draft-heads");
  if (*drafting.most == 0 || *drafting.most > 64) {
    throw UsageError(fmt::format("--draft-max: {} drafts a step; choose 1 to 64", *drafting.most));
  }
}

void check_early_exit(Options& options) {
  if (options.exit_confidence && options.early_exit.layers == 0) throw UsageError("--exit-confidence needs --early-exit E");
  if (options.early_exit.layers == 0) return;
  if (options.mode != Mode::generate) throw UsageError("--early-exit is for generating text");
  if (options.several.beams) throw UsageError("--early-exit is not for --beams: leave it out");
  if (options.drafting.by != DraftBy::nothing) {
    throw UsageError("--early-exit and --draft exclude each other: drafts keep the text of all layers, early exit does not");
  }
  if (options.keep != 0 || options.kv.budget.tokens != 0) throw UsageError("--early-exit needs all tokens: leave --keep and --kv-tokens out");
  options.early_exit.confidence = options.exit_confidence.value_or(options.early_exit.confidence);
  if (!(options.early_exit.confidence > 0.0f && options.early_exit.confidence <= 1.0f)) {
    throw UsageError(fmt::format("--exit-confidence {}: choose more than 0, at most 1", options.early_exit.confidence));
  }
}

tessera::SpeculateOptions speculation(const Options& options, const tessera::Engine& engine, std::stop_token stop) {
  const DraftingOptions& drafting = options.drafting;
  tessera::SpeculateOptions result;
  if (drafting.most) result.max_drafts = *drafting.most;
  result.branches = drafting.branches;
  switch (drafting.by) {
    case DraftBy::nothing:
    case DraftBy::forced: break;
    case DraftBy::ngram: result.drafter = value(tessera::ngram_drafter()); break;
    case DraftBy::suffix: result.drafter = value(tessera::suffix_drafter()); break;
    case DraftBy::lookahead: result.drafter = value(tessera::lookahead_drafter()); break;
    case DraftBy::heads:
    case DraftBy::mtp: result.drafter = value(tessera::head_drafter()); break;
    case DraftBy::early_exit: result.drafter = value(tessera::early_exit_drafter(drafting.layers)); break;
    case DraftBy::model: {
      Options of_draft = options;
      of_draft.model = drafting.model;
      of_draft.context = 0;
      of_draft.sliding_window = std::nullopt;
      of_draft.kv.budget = {};
      result.drafter = value(tessera::model_drafter(load_engine(of_draft, std::move(stop))));
    }
  }
  if (drafting.by == DraftBy::forced || (is_constrained(options) && !drafting.none && options.early_exit.layers == 0)) {
    result.drafter = value(tessera::forced_drafter(std::move(result.drafter)));
  }
  if (result.drafter != nullptr) (void)value(result.drafter->start(engine));
  return result;
}
