#include "output.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "options.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"

namespace rag {

namespace {

using nlohmann::json;
using tessera::tool::Lines;
using tessera::tool::shown;

constexpr std::size_t kExcerpt = 300;  // bytes of a passage that search prints

void print_object(const json& object) { print(object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"); }

// Returns the beginning of a passage, cut between words.
std::string excerpt(std::string_view text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? ' ' : c;
  if (line.size() <= kExcerpt) return line;
  const std::size_t space = line.rfind(' ', kExcerpt);
  line.resize(space == line.npos || space < kExcerpt / 2 ? kExcerpt : space);
  while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xc0) == 0x80) line.pop_back();  // no half character
  if (!line.empty() && static_cast<unsigned char>(line.back()) >= 0xc0) line.pop_back();
  return line + " ...";
}

json json_of(const Found& found) {
  json object = {{"file", found.passage.path},
                 {"heading", found.passage.heading},
                 {"first_line", found.passage.first_line},
                 {"last_line", found.passage.last_line},
                 {"likeness", found.likeness}};
  if (found.score) object["score"] = *found.score;
  return object;
}

json sources_of(const std::vector<Found>& found, bool with_text) {
  json list = json::array();
  for (const Found& each : found) {
    list.push_back(json_of(each));
    if (with_text) list.back()["text"] = each.passage.text;
  }
  return list;
}

std::string place_of(const Found& found) {
  return fmt::format("{}:{}  {}", found.passage.path, found.passage.first_line, found.passage.heading);
}

std::string figures_of(const SearchResult& result) {
  return fmt::format("searched {} passages in {:.0f} ms{}", result.searched, result.seconds * 1000.0, result.was_exact ? "" : " by the graph");
}

}  // namespace

void print(std::string_view text) {
  const std::string safe = tessera::tool::is_terminal(tessera::tool::Standard::output) ? shown(text, Lines::kept) : std::string(text);
  if (std::fwrite(safe.data(), 1, safe.size(), stdout) == safe.size() && std::fflush(stdout) == 0) return;
  throw Failure(tessera::ErrorCode::io, "cannot write to standard output");
}

void print_report(const IndexReport& report, const IndexCounts& counts, bool json_wanted) {
  if (json_wanted) {
    json skipped = json::array();
    for (const SkippedFile& file : report.skipped) skipped.push_back({{"file", file.path}, {"reason", file.reason}});
    print_object({{"added", report.added}, {"changed", report.changed}, {"removed", report.removed}, {"unchanged", report.unchanged},
                  {"embedded", report.passages}, {"files", counts.files}, {"passages", counts.passages}, {"skipped", skipped}});
    return;
  }
  for (const SkippedFile& file : report.skipped) tessera::tool::complain(kProgram, fmt::format("{} is left out: {}", file.path, file.reason));
  print(fmt::format("{} new, {} changed, {} removed, {} unchanged; the index has {} files and {} passages\n", report.added, report.changed, report.removed,
                    report.unchanged, counts.files, counts.passages));
}

void print_status(const IndexSettings& settings, const IndexCounts& counts, const std::string& index, bool json_wanted) {
  if (json_wanted) {
    print_object({{"index", index}, {"folder", settings.folder}, {"embedder", settings.embedder}, {"dimensions", settings.dimensions},
                  {"passage_tokens", settings.cut.most_tokens}, {"overlap", settings.cut.overlap}, {"files", counts.files}, {"passages", counts.passages}});
    return;
  }
  print(fmt::format("folder      {}\nembedder    {}, {} dimensions\npassages    {} of {} files, {} tokens at most, {} shared with the one before\n",
                    settings.folder, settings.embedder, settings.dimensions, counts.passages, counts.files, settings.cut.most_tokens, settings.cut.overlap));
}

void print_found(std::string_view question, const SearchResult& result, bool json_wanted) {
  if (json_wanted) {
    print_object({{"question", question}, {"found", sources_of(result.found, true)}, {"searched", result.searched}, {"exact", result.was_exact}, {"seconds", result.seconds}});
    return;
  }
  for (std::size_t i = 0; i < result.found.size(); ++i) {
    const Found& each = result.found[i];
    print(fmt::format("[{}] {}  ({:.2f})\n    {}\n", i + 1, place_of(each), each.score.value_or(each.likeness), excerpt(each.passage.text)));
  }
  fmt::print(stderr, "{}\n", figures_of(result));
}

void print_answer(std::string_view question, const SearchResult& result, const AnswerReport& report, bool json_wanted) {
  if (json_wanted) {
    print_object({{"question", question}, {"answer", report.text}, {"sources", sources_of(report.sources, false)}, {"finish", tessera::to_string(report.finish)},
                  {"prompt_tokens", report.prompt_tokens}, {"reused_tokens", report.reused_tokens}, {"tokens", report.tokens},
                  {"seconds_to_first_token", report.seconds_to_first}, {"search_seconds", result.seconds}, {"seconds", report.seconds}, {"searched", result.searched}});
    return;
  }
  print(report.text.ends_with('\n') ? "\n" : "\n\n");
  for (std::size_t i = 0; i < report.sources.size(); ++i) print(fmt::format("[{}] {}\n", i + 1, place_of(report.sources[i])));
  if (report.finish == tessera::FinishReason::max_tokens) fmt::print(stderr, "the answer was cut after {} tokens (-n)\n", report.tokens);
  fmt::print(stderr, "{}; read {} tokens, {} of them from saved prefixes; first token after {:.2f} s, {} tokens in {:.1f} s\n", figures_of(result),
             report.prompt_tokens, report.reused_tokens, report.seconds_to_first, report.tokens, report.seconds);
}

void print_nothing(std::string_view question, const SearchResult& result, float least, bool json_wanted) {
  if (json_wanted) {
    print_object({{"question", question}, {"found", json::array()}, {"best_likeness", result.best_likeness}, {"searched", result.searched}});
    return;
  }
  if (result.searched == 0) print("The index is empty.\n");
  else print(fmt::format("Nothing in the index is near this question (the nearest passage has {:.2f}, --least asks for {:.2f}).\n", result.best_likeness, least));
}

}  // namespace rag
