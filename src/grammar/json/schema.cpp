#include "grammar/json/schema.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "grammar/json/schema_compiler.hpp"

namespace tessera::grammar {

namespace {

// The options for parsing a schema: strict, so that a schema means exactly what is written, or is refused.
constexpr JsonParseOptions kExact{
    .numbers_as_written = true, .refuse_repeated_keys = true, .refuse_half_pairs = true, .deepest = 256};

const Json& always() {
  static const Json value(true);
  return value;
}

const std::string* dialect_of(const Json& root) {
  const Json* name = root.find("$schema");
  return name == nullptr ? nullptr : name->string();
}

// Finds out from which draft of JSON Schema a document is, if it does not say so: searches `node` for keywords. Sets `old` if it finds a
// keyword that only draft 7 and older have, and `fresh` if it finds one that only newer drafts have. `budget`: how many more objects and
// lists are searched.
void look_for_keywords(const Json& node, bool& old, bool& fresh, std::size_t& budget) {
  if (budget == 0) return;
  --budget;
  for (const auto& [key, value] : members_of(node)) {
    if (key == "enum" || key == "const") continue;
    old = old || key == "definitions" || key == "additionalItems" || key == "dependencies" ||
          (key == "items" && value.elements() != nullptr);
    fresh = fresh || key == "$defs" || key == "prefixItems" || key == "dependentRequired" || key == "dependentSchemas" ||
            key == "unevaluatedProperties" || key == "unevaluatedItems" || key == "$anchor" || key == "$dynamicRef";
    look_for_keywords(value, old, fresh, budget);
  }
  for (const Json& item : items_of(node)) look_for_keywords(item, old, fresh, budget);
}

Draft draft_of(const Json& root) {
  if (const std::string* name = dialect_of(root)) {
    for (const char* old : {"draft-03", "draft-04", "draft-05"}) {
      if (name->find(old) != std::string::npos) return Draft::draft4;
    }
    for (const char* seven : {"draft-06", "draft-07"}) {
      if (name->find(seven) != std::string::npos) return Draft::draft7;
    }
    if (name->find("2019-09") != std::string::npos || name->find("2020-12") != std::string::npos) return Draft::draft2020;
  }
  bool old = false, fresh = false;
  std::size_t budget = 100'000;
  look_for_keywords(root, old, fresh, budget);
  return old && !fresh ? Draft::draft7 : Draft::draft2020;
}

bool formats_asserted(const Json& root, JsonFormats formats) {
  if (formats != JsonFormats::by_draft) return formats == JsonFormats::assertion;
  const std::string* name = dialect_of(root);
  return name == nullptr || name->find("2020-12") == std::string::npos;
}

// Returns whether the dialect of a document ("$schema") is one whose keywords are known: a draft of JSON Schema, or OpenAPI's dialect,
// which only adds annotations. A document that names no dialect counts as known. In any other dialect a keyword may mean anything.
bool dialect_is_known(const std::string& name) {
  return name.empty() || name.find("json-schema.org/") != std::string::npos || name.find("spec.openapis.org/oas/") != std::string::npos;
}

}  // namespace

SchemaCompiler::SchemaCompiler(Ir& ir, const Json& root, const JsonSchemaOptions& options)
    : ir_(ir),
      store_(ir.regexes),
      forms_(ir, options.space, options.numbers),
      root_(root),
      options_(options),
      draft_(draft_of(root)),
      assert_formats_(formats_asserted(root, options.formats)),
      references_(root, draft_) {
  static_cast<void>(id_of(always(), ""));
}

Form SchemaCompiler::compile() {
  const SchemaSet whole = set_of(root_, "#");
  if (const std::string* name = dialect_of(root_); name != nullptr && !dialect_is_known(*name)) {
    refuse({&root_, "#"}, "$schema", fmt::format("the dialect '{}' is not known", name->substr(0, 80)));
  }
  const Form start = write(whole);
  while (!to_write_.empty()) {
    const auto [rule, set] = to_write_.back();
    to_write_.pop_back();
    const Form body = write(alternatives(set));
    ir_.define(rule, body);
  }
  return forms_.document(start);
}

std::uint32_t SchemaCompiler::id_of(const Json& json, const std::string& path) {
  if (is_true(json) && !schemas_.empty()) return 0;
  const auto [at, added] = ids_.try_emplace(&json, static_cast<std::uint32_t>(schemas_.size()));
  if (added) schemas_.push_back({&json, path});
  return at->second;
}

void SchemaCompiler::unsupported(const Schema& schema, std::string_view keyword, std::string_view why) const {
  fail(ErrorCode::unsupported, fmt::format("the keyword '{}' is not supported here: {}", keyword, why),
       fmt::format("{}/{}", schema.path, keyword));
}

void SchemaCompiler::refuse(const Schema& schema, std::string_view keyword, std::string_view why) {
  if (options_.unsupported == JsonUnsupported::refuse) unsupported(schema, keyword, why);
  std::string line = fmt::format("{}/{}: {}", schema.path, keyword, why);
  if (std::find(ir_.ignored.begin(), ir_.ignored.end(), line) == ir_.ignored.end()) ir_.ignored.push_back(std::move(line));
}

void SchemaCompiler::invalid(const Schema& schema, std::string_view keyword, std::string_view why) const {
  fail(ErrorCode::invalid_argument, fmt::format("the keyword '{}' {}", keyword, why), fmt::format("{}/{}", schema.path, keyword));
}

const std::string& SchemaCompiler::text_in(const Schema& schema, std::string_view keyword, const Json& value) const {
  if (value.string() == nullptr) invalid(schema, keyword, "is not a text");
  return *value.string();
}

const std::string& SchemaCompiler::name_in(const Schema& schema, std::string_view keyword, const Json& value) const {
  if (value.string() == nullptr) invalid(schema, keyword, "has an item that is not a name");
  return *value.string();
}

const Json::Array& SchemaCompiler::list_in(const Schema& schema, std::string_view keyword, const Json& value) const {
  if (value.elements() == nullptr) invalid(schema, keyword, "is not a list");
  return *value.elements();
}

const Json::Object& SchemaCompiler::object_in(const Schema& schema, std::string_view keyword, const Json& value) const {
  if (value.members() == nullptr) invalid(schema, keyword, "is not an object");
  return *value.members();
}

Form compile_schema(Ir& ir, std::string_view schema, const JsonSchemaOptions& options) {
  const auto root = Json::parse(schema, kExact);
  if (!root) throw Failure{root.error()};
  return SchemaCompiler(ir, *root, options).compile();
}

}  // namespace tessera::grammar
