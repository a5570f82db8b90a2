// Reads the keywords that limit values of one type (minimum, maxLength, items, ...).
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "grammar/json/formats.hpp"
#include "grammar/json/schema_compiler.hpp"
#include "grammar/regex/pattern.hpp"

namespace tessera::grammar {

namespace {

// Returns whether the number is an integer.
bool is_integer(const Decimal& d) noexcept { return d.fraction.empty(); }

}  // namespace

std::uint32_t SchemaCompiler::count(const Schema& schema, const char* key, std::uint32_t otherwise) {
  const Json* json = schema.json->find(key);
  if (json == nullptr) return otherwise;
  const auto value = decimal_of(*json);
  if (!value || value->negative || !is_integer(*value)) invalid(schema, key, "is not a count");
  std::uint32_t n = 0;
  if (value->whole.empty()) return 0;
  const auto [end, error] = std::from_chars(value->whole.data(), value->whole.data() + value->whole.size(), n);
  if (error != std::errc() || n > 1'000'000'000) {
    if (otherwise == kUnlimited) return kUnlimited;  // a limit so large that no text reaches it
    unsupported(schema, key, "a minimum that no text reaches");
  }
  return n;
}

std::uint8_t SchemaCompiler::read_types(const Schema& schema, NumberLimits& number) {
  const Json* type = schema.json->find("type");
  if (type == nullptr) return types::kAll;
  std::uint8_t out = 0;
  bool integer = false, any_number = false;
  const auto add = [&](const Json& json) {
    if (json.string() == nullptr) unsupported(schema, "type", "a type that is not a name");
    const std::string& name = *json.string();
    constexpr std::pair<std::string_view, std::uint8_t> names[] = {
        {"null", types::kNull},     {"boolean", types::kFalse | types::kTrue}, {"number", types::kNumber},
        {"integer", types::kNumber}, {"string", types::kString},               {"array", types::kArray},
        {"object", types::kObject}};
    const auto at = std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.first == name; });
    if (at == std::end(names)) {
      if (name == "any" && draft_ == Draft::draft4) {
        out = types::kAll;
        any_number = true;
        return;
      }
      unsupported(schema, "type", fmt::format("the type '{}' is not known", name.substr(0, 40)));
    }
    out |= at->second;
    integer = integer || name == "integer";
    any_number = any_number || name == "number";
  };
  if (const Json::Array* names = type->elements()) {
    for (const Json& name : *names) add(name);
  } else {
    add(*type);
  }
  if (integer && !any_number) number.spec.integer = true;
  return out;
}

void SchemaCompiler::read_number(const Schema& schema, NumberLimits& out) {
  const auto bound = [&](const char* key, const char* exclusive_key) -> std::optional<NumberBound> {
    std::optional<NumberBound> found;
    const auto take = [&](const char* name, const Json& json, bool exclusive) {
      if (json.type() != Json::Type::number) invalid(schema, name, "is not a number");
      const auto value = decimal_of(json);
      if (!value) unsupported(schema, name, "a number with too many digits");
      const bool lower = key == std::string_view("minimum");
      const int c = found ? value->compare(found->value) : 0;
      if (!found || (lower ? c > 0 : c < 0) || (c == 0 && exclusive)) found = NumberBound{*value, exclusive};
    };
    const Json* strict = schema.json->find(exclusive_key);
    // In draft 4, exclusiveMinimum and exclusiveMaximum are booleans beside the bound.
    const bool* const flag = strict == nullptr ? nullptr : strict->boolean();
    if (const Json* json = schema.json->find(key)) take(key, *json, flag != nullptr && *flag);
    if (strict != nullptr && flag == nullptr) take(exclusive_key, *strict, true);
    return found;
  };
  out.spec.low = bound("minimum", "exclusiveMinimum");
  out.spec.high = bound("maximum", "exclusiveMaximum");
  if (const Json* json = schema.json->find("multipleOf")) {
    const auto value = decimal_of(*json);
    if (value && (value->negative || value->zero())) invalid(schema, "multipleOf", "is not above zero");
    const auto step = value ? NumberStep::of(*value) : std::nullopt;
    if (!step) return refuse(schema, "multipleOf", "a step with too many digits");
    out.spec.step = step;
  }
}

Regex SchemaCompiler::pattern_content(const std::string& pattern, const std::string& path) {
  try {
    return parse_pattern(store_, pattern, {.spelling = Spelling::json, .match = PatternOptions::Match::search});
  } catch (Failure& failure) {
    if (failure.error.code() == ErrorCode::over_budget) throw;
    fail(failure.error.code(), fmt::format("the keyword 'pattern' is not supported here: {}", failure.error.text()), path);
  }
}

Regex SchemaCompiler::format_content(const Schema& schema) {
  const Json* format = schema.json->find("format");
  if (!assert_formats_ || format == nullptr || format->string() == nullptr) return RegexStore::kAll;
  const Format* known = find_format(*format->string());
  if (known == nullptr) return RegexStore::kAll;
  if (known->pattern.empty()) {
    refuse(schema, "format", fmt::format("'{}' is no regular language", known->name));
    return RegexStore::kAll;
  }
  std::string pattern(known->pattern);
  if (forms_.plain_numbers()) {
    constexpr std::string_view kAnyDigits = "\\d+", kSomeDigits = "\\d{1,9}";
    for (auto at = pattern.find(kAnyDigits); at != std::string::npos; at = pattern.find(kAnyDigits, at)) {
      pattern.replace(at, kAnyDigits.size(), kSomeDigits);
    }
  }
  return parse_pattern(store_, pattern, {.spelling = Spelling::json});
}

void SchemaCompiler::read_string(const Schema& schema, StringLimits& out) {
  out.min = count(schema, "minLength", 0);
  out.max = count(schema, "maxLength", kUnlimited);
  if (const Json* pattern = schema.json->find("pattern")) {
    const std::string& regex = text_in(schema, "pattern", *pattern);
    try {
      out.content = pattern_content(regex, schema.path + "/pattern");
    } catch (Failure& failure) {
      if (options_.unsupported == JsonUnsupported::refuse || failure.error.code() == ErrorCode::over_budget) throw;
      refuse(schema, "pattern", failure.error.message());
    }
  }
  out.content = store_.both(out.content, format_content(schema));
}

void SchemaCompiler::read_array(const Schema& schema, ArrayLimits& out) {
  const Json& json = *schema.json;
  out.min = count(schema, "minItems", 0);
  out.max = count(schema, "maxItems", kUnlimited);
  const auto tuple = [&](const char* key, const Json::Array& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      out.prefix.push_back(set_of(items[i], fmt::format("{}/{}/{}", schema.path, key, i)));
    }
  };
  const Json* prefix = json.find("prefixItems");
  const Json* items = json.find("items");
  if (prefix != nullptr && draft_ == Draft::draft2020) tuple("prefixItems", list_in(schema, "prefixItems", *prefix));
  if (items != nullptr && items->elements() != nullptr) {
    tuple("items", *items->elements());
    if (const Json* more = json.find("additionalItems")) out.rest = set_of(*more, schema.path + "/additionalItems");
  } else if (items != nullptr) {
    out.rest = set_of(*items, schema.path + "/items");
  }
  const Json* unique = json.find("uniqueItems");
  if (unique != nullptr && is_true(*unique) && out.max > 1) {
    refuse(schema, "uniqueItems", "a grammar does not remember items");
  }
  if (const Json* contains = json.find("contains"); contains != nullptr && draft_ != Draft::draft4) {
    const std::uint32_t least = draft_ == Draft::draft2020 ? count(schema, "minContains", 1) : 1;
    if (draft_ == Draft::draft2020 && json.find("maxContains") != nullptr) {
      refuse(schema, "maxContains", "a grammar does not count items of a kind");
    } else if (least > 1) {
      refuse(schema, "minContains", "a grammar does not count items of a kind");
    } else if (least == 1) {
      out.some.push_back({0, set_of(*contains, schema.path + "/contains")});
    }
  }
  if (const Json* rest = json.find("unevaluatedItems"); rest != nullptr && draft_ == Draft::draft2020) {
    bool alone = true;
    for (const char* key : {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef", "contains"}) alone = alone && json.find(key) == nullptr;
    if (is_true(*rest)) return;
    if (!alone) return refuse(schema, "unevaluatedItems", "beside other schemas for the same array");
    if (items == nullptr) out.rest = set_of(*rest, schema.path + "/unevaluatedItems");
  }
}

void SchemaCompiler::read_object(const Schema& schema, ObjectLimits& out) {
  const Json& json = *schema.json;
  out.min = count(schema, "minProperties", 0);
  out.max = count(schema, "maxProperties", kUnlimited);
  ObjectLimits::Additional additional;
  if (const Json* properties = json.find("properties")) {
    for (const auto& [name, value] : object_in(schema, "properties", *properties)) {
      out.properties.push_back({name, set_of(value, fmt::format("{}/properties/{}", schema.path, name))});
      additional.names.push_back(name);
      // In draft 3 (read as Draft::draft4), `required` is a boolean in the property's own schema. `required: true` is refused.
      const Json* needed = draft_ == Draft::draft4 ? value.find("required") : nullptr;
      if (needed != nullptr && is_true(*needed)) refuse(schema, "properties", "draft 3's required: true");
    }
  }
  if (const Json* patterns = json.find("patternProperties")) {
    for (const auto& [pattern, value] : object_in(schema, "patternProperties", *patterns)) {
      const std::string path = fmt::format("{}/patternProperties/{}", schema.path, pattern);
      const Regex key = store_.both(forms_.any_text(), pattern_content(pattern, path));
      out.patterns.push_back({pattern, key, set_of(value, path)});
      additional.patterns.push_back(key);
    }
  }
  const auto others = [&](const char* key, const Json& value) {
    additional.schemas = set_of(value, fmt::format("{}/{}", schema.path, key));
    if (additional.schemas != SchemaSet{0}) out.additional.push_back(std::move(additional));
  };
  const Json* more = json.find("additionalProperties");
  const Json* unevaluated = draft_ == Draft::draft2020 ? json.find("unevaluatedProperties") : nullptr;
  if (more != nullptr) {
    others("additionalProperties", *more);
  } else if (unevaluated != nullptr && !is_true(*unevaluated)) {
    bool alone = true;
    for (const char* key : {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef", "dependentSchemas", "dependencies"}) {
      alone = alone && json.find(key) == nullptr;
    }
    if (alone) {
      others("unevaluatedProperties", *unevaluated);
    } else {
      refuse(schema, "unevaluatedProperties", "beside other schemas for the same object");
    }
  }
  if (const Json* names = json.find("propertyNames")) out.names = set_of(*names, schema.path + "/propertyNames");
  if (const Json* required = json.find("required")) {
    // This is draft 3's boolean `required`, a demand on the object whose property has this schema (handled with `properties` above).
    if (required->boolean() != nullptr && draft_ == Draft::draft4) return;
    for (const Json& item : list_in(schema, "required", *required)) {
      const std::string& name = name_in(schema, "required", item);
      if (std::find(out.required.begin(), out.required.end(), name) == out.required.end()) out.required.push_back(name);
    }
  }
}

Conjunct SchemaCompiler::limits(const Schema& schema) {
  Conjunct out;
  out.types = read_types(schema, out.number);
  if ((out.types & types::kNumber) != 0) read_number(schema, out.number);
  if ((out.types & types::kString) != 0) read_string(schema, out.string);
  if ((out.types & types::kArray) != 0) read_array(schema, out.array);
  if ((out.types & types::kObject) != 0) read_object(schema, out.object);
  if (const Json* values = schema.json->find("enum")) {
    out.values.emplace();
    for (const Json& value : list_in(schema, "enum", *values)) out.values->push_back(&value);
  }
  if (const Json* value = schema.json->find("const"); value != nullptr && draft_ != Draft::draft4) {
    const bool allowed = !out.values || std::any_of(out.values->begin(), out.values->end(), [&](const Json* v) { return same_value(*v, *value); });
    out.values.emplace();
    if (allowed) out.values->push_back(value);
  }
  return out;
}

}  // namespace tessera::grammar
