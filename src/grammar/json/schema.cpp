#include "grammar/json/schema.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "grammar/json/schema_compiler.hpp"

namespace tessera::grammar {

namespace {

const Json& always() {
  static const Json value = [] {
    Json json;
    json.type = Json::Type::boolean;
    json.boolean = true;
    return json;
  }();
  return value;
}

// Whether the document has keywords that only draft 7 and older have, or only newer ones: 7, 2020 or 0.
void look_for_keywords(const Json& node, bool& old, bool& fresh, std::size_t& budget) {
  if (budget == 0) return;
  --budget;
  for (const auto& [key, value] : node.members) {
    if (key == "enum" || key == "const") continue;
    old = old || key == "definitions" || key == "additionalItems" || key == "dependencies" ||
          (key == "items" && value.is(Json::Type::array));
    fresh = fresh || key == "$defs" || key == "prefixItems" || key == "dependentRequired" || key == "dependentSchemas" ||
            key == "unevaluatedProperties" || key == "unevaluatedItems" || key == "$anchor" || key == "$dynamicRef";
    look_for_keywords(value, old, fresh, budget);
  }
  for (const Json& item : node.items) look_for_keywords(item, old, fresh, budget);
}

Draft draft_of(const Json& root) {
  const Json* name = root.find("$schema");
  if (name != nullptr && name->is(Json::Type::string)) {
    for (const char* old : {"draft-03", "draft-04", "draft-05"}) {
      if (name->text.find(old) != std::string::npos) return Draft::draft4;
    }
    for (const char* seven : {"draft-06", "draft-07"}) {
      if (name->text.find(seven) != std::string::npos) return Draft::draft7;
    }
    if (name->text.find("2019-09") != std::string::npos || name->text.find("2020-12") != std::string::npos) return Draft::draft2020;
  }
  bool old = false, fresh = false;
  std::size_t budget = 100'000;
  look_for_keywords(root, old, fresh, budget);
  return old && !fresh ? Draft::draft7 : Draft::draft2020;
}

bool formats_asserted(const Json& root, JsonFormats formats) {
  if (formats != JsonFormats::by_draft) return formats == JsonFormats::assertion;
  const Json* name = root.find("$schema");
  return name == nullptr || !name->is(Json::Type::string) || name->text.find("2020-12") == std::string::npos;
}

// A draft's name, or OpenAPI's, which adds annotations. The keywords of other dialects may mean anything.
bool dialect_is_known(const Json& name) {
  return !name.is(Json::Type::string) || name.text.empty() || name.text.find("json-schema.org/") != std::string::npos ||
         name.text.find("spec.openapis.org/oas/") != std::string::npos;
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
  if (const Json* name = root_.find("$schema"); name != nullptr && !dialect_is_known(*name)) {
    refuse({&root_, "#"}, "$schema", fmt::format("the dialect '{}' is not known", name->text.substr(0, 80)));
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
  if (json.is(Json::Type::boolean) && json.boolean && !schemas_.empty()) return 0;
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

Form compile_schema(Ir& ir, std::string_view schema, const JsonSchemaOptions& options) {
  const Json root = parse_json(schema);
  return SchemaCompiler(ir, root, options).compile();
}

}  // namespace tessera::grammar
