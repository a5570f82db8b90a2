#include "text/grammar.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "values/tables.hpp"
#include "values/values.hpp"

namespace tessera::c {

namespace {

constexpr std::string_view kSpaces[] = {"any", "none", "blank"};
constexpr std::string_view kOrders[] = {"any", "stated"};
constexpr std::string_view kNumbers[] = {"any", "plain"};
constexpr std::string_view kFormats[] = {"by_draft", "assertion", "annotation"};
constexpr std::string_view kUnsupported[] = {"refuse", "ignore"};

template <class T>
constexpr auto schema_keys() {
  return std::to_array<Key<T>>({
      {"space", "\"any\", \"none\", \"blank\"", "white space between JSON's tokens; default \"any\"",
       [](T& to, const Value& v) { to.schema().space = v.one_of<JsonSpace>(kSpaces); }},
      {"order", "\"any\", \"stated\"", "order of an object's properties; default \"any\"",
       [](T& to, const Value& v) { to.schema().order = v.one_of<JsonOrder>(kOrders); }},
      {"numbers", "\"any\", \"plain\"", "spelling of numbers; \"plain\": a limited number of digits; default \"any\"",
       [](T& to, const Value& v) { to.schema().numbers = v.one_of<JsonNumbers>(kNumbers); }},
      {"formats", "\"by_draft\", \"assertion\", \"annotation\"",
       "\"assertion\": the keyword `format` is enforced; \"annotation\": it has no effect; \"by_draft\": it has no effect if $schema names "
       "draft 2020-12; default \"assertion\"",
       [](T& to, const Value& v) { to.schema().formats = v.one_of<JsonFormats>(kFormats); }},
      {"unsupported", "\"refuse\", \"ignore\"",
       "a keyword of a schema that is not supported: \"refuse\": it is an error; \"ignore\": it is left out; default \"refuse\"",
       [](T& to, const Value& v) { to.schema().unsupported = v.one_of<JsonUnsupported>(kUnsupported); }},
  });
}

struct SchemaAlone {
  JsonSchemaOptions* options;
  JsonSchemaOptions& schema() noexcept { return *options; }
};
constexpr auto kSchemaKeys = schema_keys<SchemaAlone>();

struct GrammarAsked {
  std::optional<GrammarSource::Kind> kind;
  bool any_json = false;
  std::string text;
  JsonSchemaOptions options;
  std::size_t sources = 0;
  JsonSchemaOptions& schema() noexcept { return options; }

  void set(GrammarSource::Kind of, std::string with) {
    kind = of;
    text = std::move(with);
    ++sources;
  }
};
constexpr Key<GrammarAsked> kGrammarKeys[] = {
    {"json_schema", "object, boolean, text", "a JSON Schema, or its text",
     [](GrammarAsked& to, const Value& v) {
       if (v.json().string() == nullptr && v.json().members() == nullptr && v.json().boolean() == nullptr) {
         v.refuse("must be a schema (an object, true or false), or its text");
       }
       to.set(GrammarSource::Kind::json_schema, v.json().string() != nullptr ? v.string() : v.json().dump());
     }},
    {"regex", "text", "a regular expression that the whole text matches",
     [](GrammarAsked& to, const Value& v) { to.set(GrammarSource::Kind::regex, v.string()); }},
    {"ebnf", "text", "rules in EBNF, GBNF included",
     [](GrammarAsked& to, const Value& v) { to.set(GrammarSource::Kind::ebnf, v.string()); }},
    {"json", "boolean", "true: any JSON text",
     [](GrammarAsked& to, const Value& v) {
       to.any_json = v.boolean();
       if (to.any_json) ++to.sources;
     }},
};
constexpr auto kAskedSchemaKeys = schema_keys<GrammarAsked>();

std::vector<Key<GrammarAsked>> grammar_keys() {
  std::vector<Key<GrammarAsked>> keys(std::begin(kGrammarKeys), std::end(kGrammarKeys));
  keys.insert(keys.end(), kAskedSchemaKeys.begin(), kAskedSchemaKeys.end());
  return keys;
}

}  // namespace

CompiledGrammar read_grammar(EngineState& engine, const Value& value) {
  GrammarAsked asked;
  const auto keys = grammar_keys();
  read_keys<GrammarAsked>(value, keys, asked);
  if (asked.sources != 1) value.refuse("must have exactly one of \"json_schema\", \"regex\", \"ebnf\", \"json\"");
  try {
    if (asked.any_json) return engine.compile(must(Grammar::json(asked.options.space)));
    return engine.grammar({.kind = *asked.kind, .text = asked.text, .options = asked.options});
  } catch (const Failure& failure) {
    const Error& error = failure.error;
    fail(error.code(), error.message(), value.path() + (error.place().empty() ? "" : ": " + error.place()));
  }
}

void read_schema_options(const Value& value, JsonSchemaOptions& to) {
  SchemaAlone alone{&to};
  read_keys<SchemaAlone>(value, kSchemaKeys, alone);
}

std::vector<Table> grammar_tables() {
  const auto keys = grammar_keys();
  return {table_of<GrammarAsked>("Grammar", keys)};
}

}  // namespace tessera::c

using namespace tessera::c;
using tessera::Grammar;
using tessera::GrammarSource;

int32_t tessera_grammar_create(const tessera_engine* engine, int32_t kind, const char* given, size_t text_size,
                               const char* json, size_t json_size, tessera_grammar** grammar, tessera_error** error) {
  return call(error, [&] {
    tessera_grammar*& made = out(grammar, "grammar");
    EngineState& state = *need(engine, "engine").state;
    const std::string_view source = text(given, text_size, "text");
    tessera::JsonSchemaOptions options;
    const tessera::Json parsed = parse_json(json, json_size, "json");
    read_schema_options(Value(parsed, {}), options);
    if (kind != TESSERA_GRAMMAR_JSON_SCHEMA && !parsed.members()->empty()) {
      fail(tessera::ErrorCode::invalid_argument, "options are for TESSERA_GRAMMAR_JSON_SCHEMA alone", "json");
    }
    switch (kind) {
      case TESSERA_GRAMMAR_JSON_SCHEMA:
        made = new tessera_grammar(
            state.grammar({.kind = GrammarSource::Kind::json_schema, .text = source, .options = options}));
        return;
      case TESSERA_GRAMMAR_REGEX:
        made = new tessera_grammar(state.grammar({.kind = GrammarSource::Kind::regex, .text = source}));
        return;
      case TESSERA_GRAMMAR_EBNF:
        made = new tessera_grammar(state.grammar({.kind = GrammarSource::Kind::ebnf, .text = source}));
        return;
      case TESSERA_GRAMMAR_JSON:
        if (!source.empty())
          fail(tessera::ErrorCode::invalid_argument, "must be empty: TESSERA_GRAMMAR_JSON allows any JSON text",
               "text");
        made = new tessera_grammar(state.compile(must(Grammar::json())));
        return;
      default:
        fail(tessera::ErrorCode::invalid_argument,
             "must be a constant TESSERA_GRAMMAR_..., and is " + std::to_string(kind), "kind");
    }
  });
}

int32_t tessera_grammar_check(const tessera_grammar* grammar, const char* given, size_t text_size, int32_t* accepted,
                              size_t* at, tessera_text** expected, tessera_error** error) {
  return call(error, [&] {
    clear(at), clear(expected);
    int32_t& result = out(accepted, "accepted");
    const auto check = must(need(grammar, "grammar").grammar.check(text(given, text_size, "text")));
    if (expected != nullptr) *expected = new_text(check.expected);
    if (at != nullptr) *at = check.at;
    result = check.accepted ? 1 : 0;
  });
}

void tessera_grammar_free(tessera_grammar* grammar) { free_handle(grammar); }
