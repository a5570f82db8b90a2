// Compiles the negation of a schema, as a list of alternatives. A value is invalid for a schema if it violates at least one keyword, so
// each alternative is the violation of one keyword. The keywords `items` and `additionalProperties` are violated if some item, or some
// member, does not satisfy the keyword's schema; such alternatives have a demand on some item or some member (ArrayLimits::Some,
// ObjectLimits::Some).
#include <algorithm>

#include <fmt/format.h>

#include "grammar/json/schema_compiler.hpp"

namespace tessera::grammar {

namespace {

using Type = Json::Type;

constexpr std::string_view kAnnotations[] = {
    "title", "description", "default", "examples", "example", "$comment", "deprecated", "readOnly", "writeOnly", "$schema",
    "$id", "id", "$defs", "definitions", "$anchor", "contentEncoding", "contentMediaType", "contentSchema", "then", "else", "additionalItems", "minContains", "maxContains"};

Conjunct only(std::uint8_t type) {
  Conjunct c;
  c.types = type;
  return c;
}

}  // namespace

Alternatives SchemaCompiler::of_negated(const Schema& schema) {
  const Json& json = *schema.json;
  if (json.boolean() != nullptr) return Alternatives(*json.boolean() ? 0 : 1);
  if (json.members() == nullptr) fail(ErrorCode::invalid_argument, "a schema is an object or a boolean", schema.path);
  Alternatives out;
  const auto add = [&](const Alternatives& more) { out.insert(out.end(), more.begin(), more.end()); };
  const auto child = [&](const Json& c, const std::string& path) { return id_of(c, schema.path + path) * 2; };

  if (const Json* ref = json.find("$ref")) {
    const std::string& uri = text_in(schema, "$ref", *ref);
    add(alternatives(negated(id_of(*references_.find(json, uri), uri) * 2)));
    if (draft_ != Draft::draft2020) return out;
  }
  NumberLimits number;
  const std::uint8_t types = read_types(schema, number);
  if (types != types::kAll) add({only(static_cast<std::uint8_t>(types::kAll & ~types))});
  Conjunct broken_number = only(types::kNumber);  // numbers that violate the type integer, a bound or multipleOf
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
  for (const auto& [key, value] : *json.members()) {
    const auto items = items_of(value);
    const bool known = std::find(std::begin(kAnnotations), std::end(kAnnotations), key) != std::end(kAnnotations);
    if (known || key == "$ref" || key == "type" || key == "format" || key == "pattern") continue;
    if (draft_ != Draft::draft2020 && (key == "prefixItems" || key.starts_with("dependent") || key.starts_with("unevaluated"))) continue;
    if (draft_ == Draft::draft4 && (key == "const" || key == "contains" || key == "if")) continue;
    if (key == "allOf") {
      for (std::size_t i = 0; i < items.size(); ++i) add(alternatives(negated(child(items[i], fmt::format("/allOf/{}", i)))));
    } else if (key == "anyOf") {
      Alternatives none(1);
      for (std::size_t i = 0; i < items.size(); ++i) {
        none = cross(none, alternatives(negated(child(items[i], fmt::format("/anyOf/{}", i)))));
      }
      add(none);
    } else if (key == "not") {
      add(alternatives(child(value, "/not")));
    } else if (key == "enum" || key == "const") {
      add(negated_values(schema, key, value));
    } else if (key == "required" && value.elements() != nullptr) {
      for (const Json& name : items) {
        Conjunct c = only(types::kObject);
        c.object.properties.push_back({name_in(schema, key, name), {kNever}});
        add({c});
      }
    } else if (key == "properties") {
      for (const auto& [name, property] : members_of(value)) {
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
    } else if (key == "prefixItems" || (key == "items" && value.elements() != nullptr)) {
      if (const Json* more = key == "items" ? json.find("additionalItems") : nullptr; more != nullptr) {
        add(some_item_breaks(*more, schema.path + "/additionalItems", items.size()));
      }
      for (std::size_t i = 0; i < items.size(); ++i) {
        Conjunct c = only(types::kArray);
        c.array.prefix.resize(i);
        c.array.prefix.push_back({negated(child(items[i], fmt::format("/{}/{}", key, i)))});
        c.array.min = static_cast<std::uint32_t>(i + 1);
        add({c});
      }
    } else if (key == "minLength" || key == "maxLength" || key == "minimum" || key == "maximum" ||
               key == "exclusiveMinimum" || key == "exclusiveMaximum" || key == "multipleOf") {
      continue;  // the keywords of one type were handled together above
    } else if (is_true(value) &&
               (key == "items" || key == "additionalProperties" || key == "propertyNames" ||
                key == "unevaluatedItems" || key == "unevaluatedProperties")) {
      continue;  // every value satisfies this keyword
    } else if (key == "items") {
      const Json* prefix = draft_ == Draft::draft2020 ? json.find("prefixItems") : nullptr;
      add(some_item_breaks(value, schema.path + "/items", prefix == nullptr ? 0 : items_of(*prefix).size()));
    } else if (key == "contains") {
      if (json.find("minContains") != nullptr || json.find("maxContains") != nullptr) unsupported(schema, key, "counted, and inside 'not'");
      Conjunct c = only(types::kArray);
      c.array.rest = {negated(child(value, "/contains"))};
      add({c});
    } else if (key == "patternProperties" || key == "additionalProperties" || key == "propertyNames") {
      add(some_member_breaks(schema, key, value));
    } else if (key.starts_with("depend")) {
      add(negated_dependencies(schema, key, value));
    } else if (key == "oneOf") {
      add(negated_one_of(schema, value));
    } else if (key == "if") {
      add(negated_conditional(schema, value));
    } else {
      for (const char* hard : {"uniqueItems", "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef"}) {
        if (key == hard && !(key == "uniqueItems" && value == Json(false))) {
          unsupported(schema, key, "inside 'not' (or 'if', or an option of 'oneOf' that is not apart from the others)");
        }
      }
    }
  }
  if (out.size() > 600) out_of_fuel("its schemas combine in too many ways");
  return out;
}

Alternatives SchemaCompiler::some_item_breaks(const Json& each, const std::string& path, std::size_t from) {
  if (is_true(each)) return {};
  Conjunct c = only(types::kArray);
  c.array.min = static_cast<std::uint32_t>(from + 1);
  if (each.boolean() == nullptr) c.array.some.push_back({static_cast<std::uint32_t>(from), {negated(id_of(each, path) * 2)}});
  return {c};
}

Alternatives SchemaCompiler::some_member_breaks(const Schema& schema, const std::string& key, const Json& value) {
  Alternatives out;
  const auto add = [&](Regex names, SchemaSet broken) {
    if (broken == SchemaSet{kNever}) return;
    Conjunct c = only(types::kObject);
    c.object.some.push_back({names, std::move(broken)});
    out.push_back(std::move(c));
  };
  const auto pattern_of = [&](const std::string& pattern) {
    return store_.both(forms_.any_text(), pattern_content(pattern, fmt::format("{}/patternProperties/{}", schema.path, pattern)));
  };
  if (key == "propertyNames") {
    const SchemaSet names{id_of(value, schema.path + "/propertyNames") * 2};
    add(store_.both(forms_.any_text(), store_.negate(names_content(names))), {});
  } else if (key == "patternProperties") {
    for (const auto& [pattern, each] : members_of(value)) {
      add(pattern_of(pattern), {negated(id_of(each, fmt::format("{}/patternProperties/{}", schema.path, pattern)) * 2)});
    }
  } else {
    Regex names = forms_.any_text();
    const Json *properties = schema.json->find("properties"), *patterns = schema.json->find("patternProperties");
    std::vector<std::string> known;
    if (properties != nullptr) {
      for (const auto& [name, property] : members_of(*properties)) known.push_back(name);
    }
    if (!known.empty()) names = store_.both(names, store_.negate(store_.literals(std::move(known), Spelling::json)));
    if (patterns != nullptr) {
      for (const auto& [pattern, each] : members_of(*patterns)) names = store_.both(names, store_.negate(pattern_of(pattern)));
    }
    add(names, {negated(id_of(value, schema.path + "/additionalProperties") * 2)});
  }
  return out;
}

// Returns the alternatives of the demand: the object has a property on which something depends, and the dependent condition does not hold.
Alternatives SchemaCompiler::negated_dependencies(const Schema& schema, const std::string& key, const Json& all) {
  Alternatives out;
  for (const auto& [name, what] : members_of(all)) {
    Conjunct there = only(types::kObject);
    there.object.required.push_back(name);
    if (const auto names = names_needed(schema, key, what)) {
      for (const std::string& needed : *names) {
        Conjunct c = there;
        c.object.properties.push_back({needed, {kNever}});
        out.push_back(std::move(c));
      }
    } else {
      const std::uint32_t id = id_of(what, fmt::format("{}/{}/{}", schema.path, key, name));
      for (Conjunct& c : cross({there}, alternatives(id * 2 + 1))) out.push_back(std::move(c));
    }
  }
  return out;
}

// Returns the alternatives of the negated oneOf: no option holds, or at least two do.
Alternatives SchemaCompiler::negated_one_of(const Schema& schema, const Json& options) {
  const Json::Array& schemas = list_in(schema, "oneOf", options);
  std::vector<Signed> ids;
  Alternatives out(1);
  for (std::size_t i = 0; i < schemas.size(); ++i) {
    ids.push_back(id_of(schemas[i], fmt::format("{}/oneOf/{}", schema.path, i)) * 2);
    apply(out, alternatives(negated(ids.back())));
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t j = i + 1; j < ids.size(); ++j) {
      const Alternatives first = alternatives(ids[i]);
      for (Conjunct& c : cross(first, alternatives(ids[j]))) {
        if (!is_empty(c, 3)) out.push_back(std::move(c));
      }
    }
  }
  return out;
}

Alternatives SchemaCompiler::negated_conditional(const Schema& schema, const Json& condition) {
  const Signed yes = id_of(condition, schema.path + "/if") * 2;
  Alternatives out;
  for (const auto& [key, when] : {std::pair{"then", yes}, {"else", negated(yes)}}) {
    const Json* asked = schema.json->find(key);
    if (asked == nullptr) continue;
    const Alternatives met = alternatives(when);
    for (Conjunct& c : cross(met, alternatives(negated(id_of(*asked, fmt::format("{}/{}", schema.path, key)) * 2)))) out.push_back(std::move(c));
  }
  return out;
}

Signed SchemaCompiler::other_than(const Json& value, const std::string& path) {
  Json& schema = made_.emplace_back();
  schema.set("enum", Json::Array{value});
  return id_of(schema, path) * 2 + 1;
}

// Returns the alternatives of all values other than `value`, which is a list or an object. These are values of another type, lists with
// another length or another item, and objects that lack a member, have another value in a member, or have an additional member.
Alternatives SchemaCompiler::negated_composite(const Json& value, const std::string& path) {
  const auto items = items_of(value);
  const auto members = members_of(value);
  fuel_.spend(10 * (1 + items.size() + members.size()), "its values inside 'not' are too long");
  const std::uint8_t type = value.elements() != nullptr ? types::kArray : types::kObject;
  Alternatives out{only(static_cast<std::uint8_t>(types::kAll & ~type))};
  Conjunct c = only(type);
  if (type == types::kArray) {
    const auto size = static_cast<std::uint32_t>(items.size());
    c.array.min = size + 1;
    out.push_back(c);
    c.array.min = 0;
    c.array.max = size - 1;
    if (size > 0) out.push_back(c);
    for (std::uint32_t i = 0; i < size; ++i) {
      Conjunct item = only(type);
      item.array.prefix.resize(i);
      item.array.prefix.push_back({other_than(items[i], path)});
      item.array.min = i + 1;
      out.push_back(std::move(item));
    }
    return out;
  }
  std::vector<std::string> names;
  for (const auto& [name, member] : members) {
    names.push_back(name);
    Conjunct lacking = c, other = c;
    lacking.object.properties.push_back({name, {kNever}});
    other.object.properties.push_back({name, {other_than(member, path)}});
    other.object.required.push_back(name);
    out.push_back(std::move(lacking));
    out.push_back(std::move(other));
  }
  Regex more = forms_.any_text();
  if (!names.empty()) more = store_.both(more, store_.negate(store_.literals(std::move(names), Spelling::json)));
  c.object.some.push_back({more, {}});
  out.push_back(std::move(c));
  return out;
}

// Returns the alternatives of all values that the keyword `key` (enum or const) does not allow.
Alternatives SchemaCompiler::negated_values(const Schema& schema, const std::string& key, const Json& value) {
  Conjunct c;
  std::vector<const Json*> composites;
  std::vector<std::string> texts;
  const auto exclude = [&](const Json& v) {
    switch (v.type()) {
      case Type::null: c.types &= static_cast<std::uint8_t>(~types::kNull); break;
      case Type::boolean: c.types &= static_cast<std::uint8_t>(~(*v.boolean() ? types::kTrue : types::kFalse)); break;
      case Type::string: texts.push_back(*v.string()); break;
      case Type::number: {
        const auto number = decimal_of(v);
        if (!number) unsupported(schema, key, "a number with too many digits");
        NumberSpec spec;
        spec.low = spec.high = NumberBound{*number, false};
        c.number.excluded.push_back(spec);
        break;
      }
      case Type::array:
      case Type::object: composites.push_back(&v); break;
    }
  };
  if (key == "const") {
    exclude(value);
  } else {
    for (const Json& v : items_of(value)) exclude(v);
  }
  if (!texts.empty()) c.string.content = store_.negate(store_.literals(std::move(texts), Spelling::json));
  Alternatives out{c};
  for (const Json* composite : composites) apply(out, negated_composite(*composite, fmt::format("{}/{}", schema.path, key)));
  return out;
}

}  // namespace tessera::grammar
