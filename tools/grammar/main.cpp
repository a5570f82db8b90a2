// tessera-grammar: checks texts against a schema or grammar, and measures masks.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/extend/grammar/matcher.hpp>
#include <tessera/grammar/compiled.hpp>

#include "bench.hpp"
#include "command_line.hpp"
#include "machine_options.hpp"
#include "terminal_text.hpp"
#include "vocabulary.hpp"

namespace {

using namespace tessera;
using namespace tessera::grammar_tool;

constexpr int kUsage = 2, kFailure = 1;

constexpr const char* kFooter = R"(Examples:
  tessera-grammar --schema person.json --vocab model.gguf --check alice.json bob.json
  tessera-grammar --regex '[0-9]{4}-[0-9]{2}' --vocab model.gguf
  tessera-grammar --bench maskbench/data --vocab model.gguf --json
A text is judged as it stands in its file, without white space at its beginning and end.
Exit status: 0 all accepted, 1 failure or something not accepted, 2 usage.)";

struct Arguments {
  std::string schema, regex, grammar, bench;
  std::vector<std::filesystem::path> vocabularies;
  std::vector<std::string> checks;
  bool json = false;
  JsonSchemaOptions options;
};

int complain(const std::string& message, int status) {
  tool::complain("tessera-grammar", message);
  return status;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return Error(ErrorCode::io, "cannot read the file", path);
  return text;
}

Result<Grammar> grammar_of(const Arguments& arguments) {
  if (!arguments.regex.empty()) return Grammar::regex(arguments.regex);
  auto text = read_file(arguments.schema.empty() ? arguments.grammar : arguments.schema);
  if (!text) return std::move(text).error();
  return arguments.schema.empty() ? Grammar::ebnf(*text) : Grammar::json_schema(*text, arguments.options);
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

int check(const Arguments& arguments, const Vocabulary& vocabulary) {
  const auto grammar = grammar_of(arguments);
  if (!grammar) return complain(grammar.error().text(), kFailure);
  for (const std::string& line : grammar->ignored()) fmt::print(stderr, "ignored: {}\n", line);
  const auto compiled = CompiledGrammar::create(*grammar, vocabulary.tokens);
  if (!compiled) return complain(compiled.error().text(), kFailure);
  auto matcher = Matcher::create(*compiled);
  if (!matcher) return complain(matcher.error().text(), kFailure);
  const auto mask = matcher->mask();
  if (!mask) return complain(mask.error().text(), kFailure);
  std::size_t allowed = 0;
  for (const std::uint64_t word : *mask) allowed += static_cast<std::size_t>(__builtin_popcountll(word));
  if (arguments.checks.empty()) {
    fmt::print("compiled; {} of {} tokens may come first\n", allowed, vocabulary.tokens.size());
  }
  int status = 0;
  for (const std::string& path : arguments.checks) {
    const auto text = read_file(path);
    if (!text) return complain(text.error().text(), kFailure);
    const auto result = compiled->check(trimmed(*text));
    if (!result) return complain(result.error().text(), kFailure);
    if (result->accepted) {
      fmt::print("{}: accepted\n", path);
      continue;
    }
    status = kFailure;
    fmt::print("{}: not accepted at byte {}: expected {}\n", path, result->at, result->expected);
  }
  return status;
}

int bench(const Arguments& arguments, const Vocabulary& vocabulary) {
  const auto report = bench_folder(arguments.bench, vocabulary, arguments.options);
  if (!report) return complain(report.error().text(), kFailure);
  if (arguments.json) {
    fmt::print("{}\n", report->json().dump(2));
  } else {
    report->print();
  }
  return 0;
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  std::string formats, order;
  bool lenient = false, compact = false;
  CLI::App app{"Compiles a JSON Schema, a regular expression or a grammar and judges texts by it.", "tessera-grammar"};
  app.footer(kFooter);
  tool::add_version(app, "tessera-grammar");
  const auto source = "Give exactly one of these";
  const std::array sources{
      app.add_option("--schema", arguments.schema, "a JSON Schema")->type_name("FILE"),
      app.add_option("--regex", arguments.regex, "a regular expression")->type_name("PATTERN"),
      app.add_option("--grammar", arguments.grammar, "an EBNF or GBNF grammar")->type_name("FILE"),
      app.add_option("--bench", arguments.bench, "MaskBench or test suite files: judge and time all of them")->type_name("FOLDER"),
  };
  for (CLI::Option* each : sources) each->group(source);
  app.add_option("--vocab", arguments.vocabularies, "the model whose tokens are used; given again: the tokens of all these models together")
      ->type_name("MODEL")->required();
  app.add_option("--check", arguments.checks, "texts to judge")->type_name("FILE");
  app.add_flag("--json", arguments.json, "the figures of --bench as one JSON object");
  app.add_flag("--lenient", lenient, "leave keywords out that are not supported, and list them");
  app.add_flag("--compact", compact, "no white space between JSON's tokens");
  app.add_option("--order", order, "the order of properties: any (default) or stated")->check(CLI::IsMember({"any", "stated"}))->type_name("ORDER");
  app.add_option("--formats", formats, "when a schema's `format` is checked: always (assert, the default),\n"
                                       "as the schema's draft says (draft), or never (ignore)")
      ->check(CLI::IsMember({"draft", "assert", "ignore"}))->type_name("WHEN");
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return complain(fmt::format("{} (--help tells more)", error.what()), kUsage);
  }
  if (std::ranges::count_if(sources, [](const CLI::Option* each) { return each->count() != 0; }) != 1) {
    return complain("give exactly one of --schema, --regex, --grammar and --bench (--help tells more)", kUsage);
  }
  JsonSchemaOptions& options = arguments.options;
  if (lenient) options.unsupported = JsonUnsupported::ignore;
  if (compact) options.space = JsonSpace::none;
  if (order == "stated") options.order = JsonOrder::stated;
  if (formats == "draft") options.formats = JsonFormats::by_draft;
  if (formats == "ignore") options.formats = JsonFormats::annotation;

  const auto vocabulary = load_vocabulary(arguments.vocabularies);
  if (!vocabulary) return complain(vocabulary.error().text(), kFailure);
  return arguments.bench.empty() ? check(arguments, *vocabulary) : bench(arguments, *vocabulary);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = parse_and_run(argc, argv);
    if (!tool::output_arrived()) return complain(tool::kLostOutput, kFailure);
    return status;
  } catch (const std::exception& error) {
    return complain(error.what(), kFailure);
  }
}
