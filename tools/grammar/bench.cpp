#include "bench.hpp"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tessera/extend/grammar/matcher.hpp>

namespace tessera::grammar_tool {

namespace {

using nlohmann::ordered_json;

// Returns the processor seconds of this thread. These do not include the work of other programs.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double since(double start) { return now() - start; }

// Returns the reason of an error without the names in the message, so that equal reasons are counted together.
std::string reason_of(const Error& error) {
  std::string text = error.message();
  if (const auto quote = text.find('\''); quote != std::string::npos && text.starts_with("the keyword")) {
    const auto end = text.find('\'', quote + 1);
    return fmt::format("{}: {}", text.substr(quote + 1, end - quote - 1), text.substr(std::min(text.size(), text.find(':') + 2)));
  }
  return text;
}

// Returns whether the grammar accepts the text. Encodes the text and goes through its tokens as a generation does: before a token is
// accepted, the mask must allow it.
Result<bool> accepts(const CompiledGrammar& grammar, const Tokenizer& tokenizer, const std::string& text, Report& report) {
  const auto tokens = tokenizer.encode(text, {.bos = Bos::never});
  if (!tokens) return tokens.error();
  auto matcher = Matcher::create(grammar);
  if (!matcher) return std::move(matcher).error();
  for (const Token token : *tokens) {
    const auto start = now();
    const auto mask = matcher->mask();
    report.mask_us.push_back(since(start) * 1e6);
    ++report.masks;
    if (!mask) return mask.error();
    const auto t = static_cast<std::size_t>(token);
    if (((*mask)[t / 64] >> (t % 64) & 1) == 0) return false;
    if (auto ok = matcher->accept(token); !ok) return std::move(ok).error();
  }
  return matcher->may_end();
}

void judge(const std::string& name, const ordered_json& file, const Vocabulary& vocabulary, const JsonSchemaOptions& options,
           Report& report) {
  ++report.files;
  const std::string schema = file.at("schema").dump();
  const auto refuse = [&](const Error& error) {
    ++report.refused;
    ++report.reasons[reason_of(error)];
  };
  const auto start = now();
  const auto grammar = Grammar::json_schema(schema, options);
  if (!grammar) return refuse(grammar.error());
  const auto compiled = CompiledGrammar::create(*grammar, vocabulary.tokens);
  if (!compiled) return refuse(compiled.error());
  auto matcher = Matcher::create(*compiled);
  if (!matcher) return refuse(matcher.error());
  if (const auto mask = matcher->mask(); !mask) return refuse(mask.error());
  report.compile_ms.push_back(since(start) * 1e3);

  bool clean = true;
  for (const auto& test : file.at("tests")) {
    const auto accepted = accepts(*compiled, vocabulary.tokenizer, test.at("data").dump(), report);
    if (!accepted) return refuse(accepted.error());
    ++report.instances;
    const bool valid = test.at("valid").get<bool>();
    if (*accepted == valid) continue;
    clean = false;
    ++(valid ? report.wrong_rejects : report.wrong_accepts);
    const std::string what = test.contains("description") ? test.at("description").get<std::string>() : "";
    report.wrong.push_back(fmt::format("{}: {}: wrongly {}", name, what, valid ? "rejected" : "accepted"));
  }
  report.clean += clean;
}

}  // namespace

Result<Report> bench_folder(const std::filesystem::path& folder, const Vocabulary& vocabulary, const JsonSchemaOptions& options) {
  std::error_code failed;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().extension() == ".json") paths.push_back(at->path());
  }
  if (failed) return Error(ErrorCode::io, failed.message(), folder.string());
  std::sort(paths.begin(), paths.end());
  Report report;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const ordered_json file = ordered_json::parse(in, nullptr, false);
    if (!in.good() && !in.eof()) return Error(ErrorCode::io, "cannot read the file", path.string());
    const std::string name = path.filename().string();
    if (file.is_object() && file.contains("schema") && file.contains("tests")) {
      judge(name, file, vocabulary, options, report);
    } else if (file.is_array()) {
      for (const auto& group : file) {
        judge(fmt::format("{}: {}", name, group.value("description", "")), group, vocabulary, options, report);
      }
    } else {
      return Error(ErrorCode::invalid_argument, "not a MaskBench file: an object with schema and tests", path.string());
    }
  }
  return report;
}

}  // namespace tessera::grammar_tool
