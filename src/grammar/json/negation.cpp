// What a schema does not allow, as alternatives: a value that breaks one keyword. Keywords whose breach is about some item
// or some member cannot be said from left to right and are refused.
#include <algorithm>

#include <fmt/format.h>

#include "grammar/json/schema_compiler.hpp"

namespace tessera::grammar {

namespace {

using Type = Json::Type;

constexpr std::string_view kAnnotations[] = {
    "title", "description", "default", "examples", "example", "$comment", "deprecated", "readOnly", "writeOnly", "$schema",
    "$id", "id", "$defs", "definitions", "$anchor", "contentEncoding", "contentMediaType", "contentSchema", "then", "else"};

Conjunct only(std::uint8_t type) {
  Conjunct c;
  c.types = type;
  return c;
}

}  // namespace

Alternatives SchemaCompiler::of_negated(const Schema& schema) {
  const Json& json = *schema.json;
  if (json.is(Type::boolean)) return Alternatives(json.boolean ? 0 : 1);
  if (!json.is(Type::object)) fail(ErrorCode::invalid_argument, "a schema is an object or a boolean", schema.path);
  Alternatives out;
  const auto add = [&](const Alternatives& more) { out.insert(out.end(), more.begin(), more.end()); };
  const auto child = [&](const Json& c, const std::string& path) { return id_of(c, schema.path + path) * 2; };

  const Json* ref = json.find("$ref");
  if (ref != nullptr) {
    add(alternatives(negated(id_of(*references_.find(json, ref->text), ref->text) * 2)));
    if (draft_ != Draft::draft2020) return out;
  }
  NumberLimits number;
  const std::uint8_t types = read_types(schema, number);
  if (types != types::kAll) add({only(static_cast<std::uint8_t>(types::kAll & ~types))});
  Conjunct broken_number = only(types::kNumber);  // of the integer type, of bounds and steps
  read_number(schema, number);
  if (number.spec != NumberSpec{}) {
    broken_number.number.excluded.push_back(number.spec);
    add({broken_number});
  }
  StringLimits string;
  read_string(schema, string);
  if (const Regex content = string_content(string); content != forms_.any_text()) {
    Conjunct c = only(types::kString);
    c.string.content = store_.negate(content);
    add({c});
  }
  for (const auto& [key, value] : json.members) {
    const bool known = std::find(std::begin(kAnnotations), std::end(kAnnotations), key) != std::end(kAnnotations);
    if (known || key == "$ref" || key == "type" || key == "format" || key == "pattern") continue;
    if (key == "allOf") {
      for (std::size_t i = 0; i < value.items.size(); ++i) add(alternatives(negated(child(value.items[i], fmt::format("/allOf/{}", i)))));
    } else if (key == "anyOf") {
      Alternatives none(1);
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        none = cross(none, alternatives(negated(child(value.items[i], fmt::format("/anyOf/{}", i)))));
      }
      add(none);
    } else if (key == "not") {
      add(alternatives(child(value, "/not")));
    } else if (key == "enum" || key == "const") {
      add(negated_values(schema, key, value));
    } else if (key == "required" && value.is(Type::array)) {
      for (const Json& name : value.items) {
        Conjunct c = only(types::kObject);
        c.object.properties.push_back({name.text, {kNever}});
        add({c});
      }
    } else if (key == "properties") {
      for (const auto& [name, property] : value.members) {
        const Signed broken = negated(child(property, fmt::format("/properties/{}", name)));
        if (broken == kNever) continue;
        Conjunct c = only(types::kObject);
        c.object.properties.push_back({name, {broken}});
        c.object.required.push_back(name);
        add({c});
      }
    } else if (key == "minItems" || key == "minProperties") {
      const std::uint32_t n = count(schema, key.c_str(), 0);
      if (n == 0) continue;
      Conjunct c = only(key == "minItems" ? types::kArray : types::kObject);
      (key == "minItems" ? c.array.max : c.object.max) = n - 1;
      add({c});
    } else if (key == "maxItems" || key == "maxProperties") {
      const std::uint32_t n = count(schema, key.c_str(), kUnlimited);
      if (n == kUnlimited) continue;
      Conjunct c = only(key == "maxItems" ? types::kArray : types::kObject);
      (key == "maxItems" ? c.array.min : c.object.min) = n + 1;
      add({c});
    } else if (key == "prefixItems" || (key == "items" && value.is(Type::array))) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        Conjunct c = only(types::kArray);
        c.array.prefix.resize(i);
        c.array.prefix.push_back({negated(child(value.items[i], fmt::format("/{}/{}", key, i)))});
        c.array.min = static_cast<std::uint32_t>(i + 1);
        add({c});
      }
    } else if (key == "minLength" || key == "maxLength" || key == "minimum" || key == "maximum" ||
               key == "exclusiveMinimum" || key == "exclusiveMaximum" || key == "multipleOf") {
      continue;  // above
    } else if (value.is(Type::boolean) && value.boolean &&
               (key == "items" || key == "additionalProperties" || key == "additionalItems" || key == "propertyNames" ||
                key == "unevaluatedItems" || key == "unevaluatedProperties")) {
      continue;  // cannot be broken
    } else {
      for (const char* hard : {"items", "additionalItems", "additionalProperties", "patternProperties", "propertyNames",
                               "contains", "uniqueItems", "oneOf", "if", "dependencies", "dependentRequired",
                               "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef"}) {
        if (key == hard && !(key == "uniqueItems" && value.is(Type::boolean) && !value.boolean)) {
          unsupported(schema, key, "inside 'not' (or 'if', or an option of 'oneOf' that is not apart from the others)");
        }
      }
    }
  }
  if (out.size() > 600) out_of_fuel("its schemas combine in too many ways");
  return out;
}

// All values but these.
Alternatives SchemaCompiler::negated_values(const Schema& schema, const std::string& key, const Json& value) {
  Conjunct c;
  std::vector<std::string> texts;
  const auto exclude = [&](const Json& v) {
    switch (v.type) {
      case Type::null: c.types &= static_cast<std::uint8_t>(~types::kNull); break;
      case Type::boolean: c.types &= static_cast<std::uint8_t>(~(v.boolean ? types::kTrue : types::kFalse)); break;
      case Type::string: texts.push_back(v.text); break;
      case Type::number: {
        const auto number = Decimal::parse(v.text);
        if (!number) unsupported(schema, key, "a number with too many digits");
        NumberSpec spec;
        spec.low = spec.high = NumberBound{*number, false};
        c.number.excluded.push_back(spec);
        break;
      }
      case Type::array:
      case Type::object: unsupported(schema, key, "a list or an object inside 'not'");
    }
  };
  if (key == "const") {
    exclude(value);
  } else {
    for (const Json& v : value.items) exclude(v);
  }
  if (!texts.empty()) c.string.content = store_.negate(store_.literals(std::move(texts), Spelling::json));
  return {c};
}

}  // namespace tessera::grammar
