// Compiles the keywords that combine schemas (allOf, anyOf, oneOf, if, ...). The result is a list of alternatives (conjunct.hpp): a value
// is valid if it satisfies at least one of them.
#include <algorithm>

#include <fmt/format.h>

#include "grammar/json/schema_compiler.hpp"

namespace tessera::grammar {

namespace {

constexpr std::size_t kMostAlternatives = 600;

std::uint64_t weight(const Conjunct& c) {
  return 2 + c.object.properties.size() + c.object.required.size() + c.object.additional.size() + c.array.prefix.size() +
         c.object.some.size() + c.array.some.size() +
         (c.values ? c.values->size() / 4 : 0);
}

}  // namespace

Alternatives SchemaCompiler::cross(const Alternatives& a, const Alternatives& b) {
  Alternatives out;
  for (const Conjunct& x : a) {
    for (const Conjunct& y : b) {
      fuel_.spend(weight(x) + weight(y), "its schemas combine in too many ways");
      Conjunct both = intersect(store_, x, y);
      if (both.types == 0 || (both.values && both.values->empty())) continue;
      out.push_back(std::move(both));
      if (out.size() > kMostAlternatives) out_of_fuel("its schemas combine in too many ways");
    }
  }
  return out;
}

const Alternatives& SchemaCompiler::alternatives(Signed schema) {
  if (const auto found = known_.find(schema); found != known_.end()) return found->second;
  const Schema s = schemas_[schema / 2];
  if (std::find(open_.begin(), open_.end(), schema) != open_.end()) {
    unsupported(s, "$ref", "it leads back to itself without going deeper");
  }
  if (open_.size() > 200) out_of_fuel("its schemas refer to each other in too long a chain");
  open_.push_back(schema);
  Alternatives made;
  try {
    made = schema % 2 == 0 ? of_schema(s) : of_negated(s);
  } catch (...) {
    open_.pop_back();
    throw;
  }
  open_.pop_back();
  return known_.emplace(schema, std::move(made)).first->second;
}

Alternatives SchemaCompiler::alternatives(const SchemaSet& set) {
  Alternatives out(1);
  for (const Signed schema : set) {
    if (schema != 0) apply(out, alternatives(schema));
  }
  return out;
}

Alternatives SchemaCompiler::of_schema(const Schema& schema) {
  const Json& json = *schema.json;
  if (json.boolean() != nullptr) return Alternatives(*json.boolean() ? 1 : 0);
  if (json.members() == nullptr) fail(ErrorCode::invalid_argument, "a schema is an object or a boolean", schema.path);
  const auto part = [&](const Json& child, const std::string& path) -> Alternatives {
    return alternatives(id_of(child, schema.path + path) * 2);
  };
  Alternatives out(1);
  if (const Json* ref = json.find("$ref")) {
    const std::string& uri = text_in(schema, "$ref", *ref);
    const Json* target = nullptr;
    try {
      target = references_.find(json, uri);
    } catch (Failure& failure) {
      refuse(schema, "$ref", failure.error.message());
    }
    if (target != nullptr) out = alternatives(id_of(*target, uri) * 2);
    if (draft_ != Draft::draft2020) return out;  // in older drafts, keywords beside a $ref are ignored
  }
  for (const char* key : {"$dynamicRef", "$recursiveRef"}) {
    if (json.find(key) != nullptr) refuse(schema, key, "what it refers to depends on where it is used");
  }
  apply(out, {limits(schema)});
  if (const Json* all = json.find("allOf")) {
    const auto parts = items_of(*all);
    for (std::size_t i = 0; i < parts.size(); ++i) apply(out, part(parts[i], fmt::format("/allOf/{}", i)));
  }
  if (const Json* any = json.find("anyOf")) {
    Alternatives options;
    const auto parts = items_of(*any);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Alternatives more = part(parts[i], fmt::format("/anyOf/{}", i));
      options.insert(options.end(), more.begin(), more.end());
    }
    apply(out, options);
  }
  if (const Json* inside = json.find("not"); inside != nullptr) {
    const std::uint32_t id = id_of(*inside, schema.path + "/not");
    Alternatives negative(1);
    try {
      negative = alternatives(id * 2 + 1);
    } catch (Failure& failure) {
      if (failure.error.code() != ErrorCode::unsupported) throw;
      refuse(schema, "not", failure.error.text());
    }
    apply(out, negative);
  }
  apply_conditional(out, schema);
  apply_dependencies(out, schema);
  if (const Json* one = json.find("oneOf")) apply_one_of(out, schema, *one);
  return out;
}

// Applies oneOf: exactly one option must hold. So the result has, for each option, the alternatives in which this option holds and all
// other options do not. (An option that cannot hold for the same value anyway needs no negation.)
void SchemaCompiler::apply_one_of(Alternatives& into, const Schema& schema, const Json& options) {
  const Json::Array& schemas = list_in(schema, "oneOf", options);
  std::vector<Signed> ids;
  std::vector<Alternatives> parts;
  for (std::size_t i = 0; i < schemas.size(); ++i) {
    ids.push_back(id_of(schemas[i], fmt::format("{}/oneOf/{}", schema.path, i)) * 2);
    const Alternatives option = alternatives(ids.back());
    parts.push_back(cross(into, option));
  }
  Alternatives out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Alternatives mine = parts[i];
    for (std::size_t j = 0; j < parts.size(); ++j) {
      if (i == j) continue;
      Alternatives both = cross(mine, parts[j]);
      if (std::all_of(both.begin(), both.end(), [&](const Conjunct& c) { return is_empty(c, 3); })) continue;
      try {
        mine = cross(mine, alternatives(negated(ids[j])));
      } catch (Failure& failure) {
        if (failure.error.code() != ErrorCode::unsupported) throw;
        refuse(schema, "oneOf", fmt::format("options {} and {} may both hold ({})", i, j, failure.error.text()));
      }
    }
    out.insert(out.end(), mine.begin(), mine.end());
  }
  if (out.size() > kMostAlternatives) out_of_fuel("its schemas combine in too many ways");
  into = std::move(out);
}

void SchemaCompiler::apply_conditional(Alternatives& into, const Schema& schema) {
  const Json *condition = schema.json->find("if"), *then = schema.json->find("then"), *otherwise = schema.json->find("else");
  if (condition == nullptr || (then == nullptr && otherwise == nullptr) || draft_ == Draft::draft4) return;
  const Signed yes = id_of(*condition, schema.path + "/if") * 2;
  try {
    Alternatives out = cross(into, alternatives(yes));
    if (then != nullptr) apply(out, alternatives(id_of(*then, schema.path + "/then") * 2));
    Alternatives no = cross(into, alternatives(negated(yes)));
    if (otherwise != nullptr) apply(no, alternatives(id_of(*otherwise, schema.path + "/else") * 2));
    out.insert(out.end(), no.begin(), no.end());
    into = std::move(out);
  } catch (Failure& failure) {
    if (failure.error.code() != ErrorCode::unsupported) throw;
    refuse(schema, "if", failure.error.text());
  }
}

std::optional<std::vector<std::string>> SchemaCompiler::names_needed(const Schema& schema, std::string_view keyword, const Json& what) {
  if (what.string() != nullptr) return std::vector{*what.string()};
  if (what.elements() == nullptr) return std::nullopt;
  std::vector<std::string> out;
  for (const Json& name : *what.elements()) out.push_back(name_in(schema, keyword, name));
  return out;
}

// Returns the alternatives of the demand: the object does not have the property `name`, or `then` holds.
Alternatives SchemaCompiler::depends(const std::string& name, const Alternatives& then) {
  Alternatives out(1);
  out[0].object.properties.push_back({name, {kNever}});
  out.insert(out.end(), then.begin(), then.end());
  return out;
}

void SchemaCompiler::apply_dependencies(Alternatives& into, const Schema& schema) {
  for (const char* key : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    if (draft_ != Draft::draft2020 && key != std::string_view("dependencies")) continue;
    const Json* all = schema.json->find(key);
    if (all == nullptr) continue;
    for (const auto& [name, what] : members_of(*all)) {
      Alternatives then(1);
      if (const auto needed = names_needed(schema, key, what)) {
        then[0].object.required = *needed;
      } else {
        then = alternatives(id_of(what, fmt::format("{}/{}/{}", schema.path, key, name)) * 2);
      }
      apply(into, depends(name, then));
    }
  }
}

}  // namespace tessera::grammar
