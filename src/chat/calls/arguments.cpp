#include "chat/calls/arguments.hpp"

#include <algorithm>

#include "chat/calls/compose.hpp"
#include "chat/calls/schema_keys.hpp"
#include "support/error.hpp"

namespace tessera::calls {

Json parameters_of(const Json& function) {
  const Json* schema = function.find("parameters");
  Json out = schema != nullptr && schema->members() != nullptr ? *schema : Json::object();
  if (out.members()->empty()) out.set("additionalProperties", false);
  if (out.find("type") == nullptr) out.set("type", "object");
  return out;
}

Grammar json_arguments(const Json& schema, const JsonSchemaOptions& options) {
  return must(Grammar::json_schema(schema.dump(), options));
}

namespace {

constexpr std::size_t kLongestSchemas = std::size_t{2} << 20;  // bytes of all properties' documents

// A property's schema as a document of its own: what its references name comes with it.
Json with_definitions(const Json& property, const Json& root) {
  Json out = property;
  if (out.members() == nullptr || out.dump().find("\"$ref\"") == std::string::npos) return out;
  for (const char* key : {"$defs", "definitions"}) {
    const Json* definitions = root.find(key);
    if (definitions != nullptr && out.find(key) == nullptr) out.set(key, *definitions);
  }
  return out;
}

// A string as it is, up to the marker behind it.
Grammar raw_string(const Json& schema, const std::string& close, const std::string& path, const JsonSchemaOptions& options) {
  if (const auto values = fixed_values(schema)) {
    std::vector<std::string> texts;
    for (const Json& value : *values) {
      if (value.string() != nullptr) texts.push_back(*value.string());
    }
    if (texts.empty()) refuse(path, "an enum of a string without a string");
    if (std::any_of(texts.begin(), texts.end(), [&](const std::string& text) { return text.find(close) != text.npos; })) {
      refuse(path, "a string with a marker in it");
    }
    return any_text_of(texts);
  }
  check_keys(schema, {"type"}, path, options);
  return must(Grammar::without(std::vector<std::string>{close}));
}

}  // namespace

Grammar parameter_arguments(const Json& schema, const CallForm& form, const JsonSchemaOptions& options) {
  Sequence all;
  std::size_t bytes = 0;
  for (const Property& property : properties_of(schema, options)) {
    const bool text = is_type(property.schema, "string");
    Sequence one;
    one.text(form.key_open).text(property.name).text(form.key_close);
    if (form.marks_strings) one.text(text ? " string=\"true\"" : " string=\"false\"");
    if (!form.value_open.empty()) one.pattern(kSpace).text(form.value_open);
    else one.pattern("\\n?");
    if (text) {
      one.part(raw_string(property.schema, form.value_close, property.path, options));
    } else {
      const std::string document = with_definitions(property.schema, schema).dump();
      bytes += document.size();
      if (bytes > kLongestSchemas) refuse(property.path, "schemas of so many bytes");
      one.part(must(Grammar::json_schema(document, options)));
    }
    if (form.value_open.empty()) one.pattern("\\n?");
    one.text(form.value_close).pattern(kSpace);
    all.part(property.required ? one.done() : optional(one.done()));
  }
  return all.done();
}

}  // namespace tessera::calls
