// Prints several texts on standard output: each text after a line of its own; or ids, one line for each text; or one JSON object with all.
#include "several.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/decoding/samples.hpp>

#include "failure.hpp"
#include "model.hpp"
#include "option_words.hpp"
#include "options.hpp"
#include "output/output.hpp"
#include "output/terminal.hpp"

using tessera::Token;
using Object = nlohmann::ordered_json;

namespace {

struct Text {
  std::vector<Token> tokens;
  std::string text;
  tessera::FinishReason finish = tessera::FinishReason::none;
  std::optional<double> logprob;       // sum over all tokens
  std::optional<double> score;         // beams: the score
};

// The figures that are printed after the texts.
struct Summary {
  std::string_view name;               // "sample", "beam"
  std::size_t count = 0;               // number of samples or beams; a search shows only the best beams
  std::optional<std::size_t> best;
  std::optional<std::uint64_t> seed;
  double seconds = 0.0;
  std::size_t drafted = 0, accepted = 0;
  std::optional<tessera::Error> error;
};

double mean(const Text& text) { return *text.logprob / static_cast<double>(std::max<std::size_t>(text.tokens.size(), 1)); }

std::size_t tokens_of(std::span<const Text> texts) {
  std::size_t tokens = 0;
  for (const Text& text : texts) tokens += text.tokens.size();
  return tokens;
}

std::string_view end_of(const Text& text, const Summary& summary) {
  const bool has_ended = text.finish != tessera::FinishReason::none;
  return reason(Outcome{.finish = text.finish, .figures = {}, .error = has_ended ? std::nullopt : summary.error});
}

void print_json(const PromptRead& prompt, std::span<const Text> texts, const Summary& summary) {
  Object list = Object::array();
  for (const Text& text : texts) {
    Object one{{"tokens", text.tokens}, {"text", text.text}, {"finish_reason", tessera::to_string(text.finish)}};
    if (text.logprob) one["logprob"] = *text.logprob;
    if (text.score) one["score"] = *text.score;
    else if (text.logprob) one["mean_logprob"] = mean(text);
    list.push_back(std::move(one));
  }
  Object json{{"prompt_tokens", prompt.tokens}};
  json[std::string(summary.name) + "s"] = std::move(list);
  if (summary.best) json["best"] = *summary.best;
  if (summary.error) json["error"] = in_options(summary.error->text());
  if (summary.seed) json["seed"] = *summary.seed;
  json["figures"] = {{"tokens", tokens_of(texts)},
                     {"seconds", summary.seconds},
                     {"drafted", summary.drafted},
                     {"accepted", summary.accepted}};
  print(json.dump(-1, ' ', false, Object::error_handler_t::replace) + "\n");
}

void print_text(const Options& options, const PromptRead& prompt, std::span<const Text> texts, const Summary& summary) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (options.several.best_of && i != summary.best) continue;
    const Text& text = texts[i];
    if (options.output == OutputKind::tokens) {
      print(fmt::format("{}\n", fmt::join(text.tokens, " ")));
      continue;
    }
    std::string head = fmt::format("--- {} {} of {}: {}", summary.name, i + 1, texts.size(), end_of(text, summary));
    if (text.score) head += fmt::format("; score {:.4f}", *text.score);
    else if (text.logprob) head += fmt::format("; {:.4f} a token", mean(text));
    const std::string body = (options.no_echo ? "" : prompt.text) + text.text;
    print(head + "\n" + body + (body.ends_with('\n') ? "" : "\n"));
  }
}

void print_figures(const PromptRead& prompt, std::span<const Text> texts, const Summary& summary) {
  const std::size_t tokens = tokens_of(texts);
  std::string line = fmt::format("{} {}s, {} tokens after a prompt of {}; {}", summary.count, summary.name, tokens,
                                 prompt.tokens.size(), human_seconds(summary.seconds));
  if (summary.seconds > 0.0 && summary.name == "sample") line += fmt::format("; {:.4g} tokens/s", static_cast<double>(tokens) / summary.seconds);
  if (summary.drafted > 0) line += fmt::format("; {} of {} drafts accepted", summary.accepted, summary.drafted);
  if (summary.seed) line += fmt::format("; seed {}", *summary.seed);
  fmt::print(stderr, "[{}]\n", line);
}

void print_all(const Options& options, const PromptRead& prompt, std::span<const Text> texts, const Summary& summary) {
  if (options.output == OutputKind::json) {
    print_json(prompt, texts, summary);
  } else {
    print_text(options, prompt, texts, summary);
    print_figures(prompt, texts, summary);
  }
  if (summary.error) throw Failure(*summary.error);
}

// Returns the most tokens that a text can have.
std::size_t most_tokens(const PromptRead& prompt, const tessera::GenerateOptions& generate) {
  return generate.max_tokens != 0 ? generate.max_tokens : prompt.session.context() - std::min<std::size_t>(prompt.session.context(), prompt.tokens.size());
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

void check_several(const Options& o) {
  const SeveralOptions& several = o.several;
  if (several.samples.has_value() + several.best_of.has_value() + several.beams.has_value() > 1) {
    throw UsageError("--samples, --best-of and --beams exclude each other");
  }
  for (const auto& [name, number] : {std::pair("--samples", several.samples), {"--best-of", several.best_of}, {"--beams", several.beams}}) {
    if (number && (*number == 0 || *number > 1024)) throw UsageError(fmt::format("{}: {}; choose 1 to 1024", name, *number));
  }
  if (!several.beams && (several.length_penalty || several.results || several.early_stopping)) {
    throw UsageError("--length-penalty, --early-stopping and --results are for --beams");
  }
  if (several.results && (*several.results == 0 || *several.results > *several.beams)) {
    throw UsageError(fmt::format("--results: {} of {} beams; choose 1 to {}", *several.results, *several.beams, *several.beams));
  }
  if (!several.asked()) return;
  if (o.mode != Mode::generate) throw UsageError("--samples, --best-of and --beams are for generating text");
  if (o.save_session) throw UsageError("--save-session is for one text, not for --samples, --best-of or --beams");
  if (o.logprobs != 0) throw UsageError("--logprobs is for one text; --best-of and --beams tell each text's own log-probability");
  if (o.max_tokens == 0) throw UsageError("-n 0: a text has a token at least");
  if (!several.beams) return;
  if (o.drafting.by != DraftBy::nothing || !o.stop_strings.empty() || o.json_schema || o.regex || o.grammar_file || o.choice) {
    throw UsageError("--draft, --stop, --json-schema, --regex, --grammar and --choice are not for --beams: leave them out");
  }
  if (o.keep != 0) throw UsageError("--keep is not for --beams: they end with the context");
  if (o.kv.budget.tokens != 0) throw UsageError("--kv-tokens is not for --beams, which keep all tokens");
  if (o.kv.kind == tessera::KvKind::contiguous) throw UsageError("--kv-layout contiguous is not for --beams, which share pages: leave it out");
}

void write_samples(const Options& options, const PromptRead& prompt, const tessera::Sampler& sampler,
                   const tessera::GenerateOptions& generate, std::optional<std::uint64_t> seed) {
  const bool picks = options.several.best_of.has_value();
  const std::uint32_t n = picks ? *options.several.best_of : *options.several.samples;
  const auto begin = std::chrono::steady_clock::now();
  tessera::Samples samples = value(tessera::Samples::start(
      prompt.session, sampler,
      {.samples = n, .generate = generate, .best_by = picks ? tessera::BestBy::mean_logprob : tessera::BestBy::nothing}));
  std::vector<Text> texts(n);
  Summary summary{.name = "sample", .count = n, .best = {}, .seed = seed, .error = {}};
  ProgressBar bar("Drawing", ProgressBar::Unit::tokens);
  for (std::size_t done = 0; auto piece = samples.next(); bar.update(++done, n * most_tokens(prompt, generate))) {
    Text& text = texts[piece->sample];
    text.tokens.push_back(piece->piece.token);
    text.text += piece->piece.text;
  }
  bar.finish();
  if (const tessera::Status status = samples.status(); !status) summary.error = status.error();
  summary.seconds = seconds_since(begin);
  if (samples.best()) summary.best = *samples.best();
  for (std::uint32_t i = 0; i < n; ++i) {
    texts[i].finish = samples.finish_reason(i);
    if (picks) texts[i].logprob = samples.logprob(i);
    summary.drafted += samples.figures(i).drafted;
    summary.accepted += samples.figures(i).accepted;
  }
  print_all(options, prompt, texts, summary);
}

void write_beams(const Options& options, const PromptRead& prompt, const tessera::GenerateOptions& generate) {
  const SeveralOptions& several = options.several;
  const auto begin = std::chrono::steady_clock::now();
  tessera::BeamSearch search = value(tessera::BeamSearch::start(
      prompt.session, {.beams = *several.beams,
                       .results = several.results.value_or(1),
                       .max_tokens = generate.max_tokens,
                       .length_penalty = several.length_penalty.value_or(1.0f),
                       .early_stopping = several.early_stopping.value_or(tessera::EarlyStopping::likely),
                       .end_of_generation = generate.end_of_generation,
                       .stop = generate.stop}));
  {
    ProgressBar bar("Searching", ProgressBar::Unit::tokens);
    for (std::size_t done = 0; value(search.step());) bar.update(++done, most_tokens(prompt, generate));
  }
  const std::vector<tessera::Beam> beams = value(search.results());
  Summary summary{.name = "beam", .count = *several.beams, .best = {}, .seed = {}, .seconds = seconds_since(begin), .error = {}};
  std::vector<Text> texts;
  for (const tessera::Beam& beam : beams) {
    texts.push_back({.tokens = beam.tokens, .text = beam.text, .finish = beam.finish, .logprob = beam.logprob, .score = beam.score});
  }
  print_all(options, prompt, texts, summary);
}
