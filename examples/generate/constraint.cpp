#include "constraint.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"

using tessera::Grammar;

namespace {

std::string read_option(const char* option, const std::string& path) {
  std::ifstream in(tessera::tool::path_of(path), std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw UsageError(fmt::format("{}: cannot read the file {}", option, path));
  return text;
}

// Returns the text of a JSON schema. `text`, the value of --json-schema, is the schema itself if it begins with "{"; otherwise it is the
// name of a file with the schema.
std::string schema_text(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return text;
  return read_option("--json-schema", text);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const auto comma = text.find(',', at);
    parts.push_back(text.substr(at, comma == std::string::npos ? comma : comma - at));
    if (comma == std::string::npos) return parts;
    at = comma + 1;
  }
}

Grammar checked(const char* option, tessera::Result<Grammar> grammar) {
  if (!grammar) throw UsageError(fmt::format("{}: {}", option, grammar.error().text()));
  return *std::move(grammar);
}

}  // namespace

bool is_constrained(const Options& o) noexcept { return o.json_schema || o.regex || o.grammar_file || o.choice; }

std::optional<Grammar> read_constraint(const Options& o) {
  // Limits white space and digits, because some models would go on writing them for ever.
  if (o.json_schema) {
    return checked("--json-schema", Grammar::json_schema(schema_text(*o.json_schema),
                                                         {.space = tessera::JsonSpace::blank, .numbers = tessera::JsonNumbers::plain}));
  }
  if (o.regex) return checked("--regex", Grammar::regex(*o.regex));
  if (o.grammar_file) return checked("--grammar", Grammar::ebnf(read_option("--grammar", *o.grammar_file)));
  if (o.choice) return checked("--choice", Grammar::choice(split(*o.choice)));
  return std::nullopt;
}

tessera::Matcher make_matcher(const Grammar& grammar, const tessera::Tokenizer& tokenizer) {
  const auto vocabulary = value(tessera::GrammarVocabulary::create(tokenizer));
  return value(tessera::Matcher::create(value(tessera::CompiledGrammar::create(grammar, vocabulary))));
}
