// Writes alternatives as forms of a grammar. The form of a number, a string or another scalar is inserted where it is needed. Lists and
// objects become rules, one for each set of schemas: a schema that refers to itself becomes a rule that calls itself.
#include <algorithm>
#include <array>

#include "grammar/json/schema_compiler.hpp"

namespace tessera::grammar {

namespace {

using Type = Json::Type;
constexpr std::size_t kMostRules = 20'000;

bool unlimited(const ArrayLimits& a) {
  return a.prefix.empty() && a.rest.empty() && a.some.empty() && a.min == 0 && a.max == kUnlimited;
}
bool unlimited(const ObjectLimits& o) {
  return o.properties.empty() && o.required.empty() && o.patterns.empty() && o.additional.empty() && o.names.empty() &&
         o.some.empty() && o.min == 0 && o.max == kUnlimited;
}

}  // namespace

Form SchemaCompiler::write(const SchemaSet& given) {
  SchemaSet set = given;
  std::erase(set, 0u);
  if (set.empty()) return forms_.any_value();
  if (const auto found = written_.find(set); found != written_.end()) return found->second;
  if (written_.size() > kMostRules) out_of_fuel("its schemas combine in too many ways");
  const Alternatives all = alternatives(set);
  const bool scalar = std::all_of(all.begin(), all.end(), [](const Conjunct& c) {
    return c.values || (c.types & (types::kArray | types::kObject)) == 0;
  });
  if (scalar) {
    const Form form = write(all);
    written_.emplace(set, form);
    return form;
  }
  const std::uint32_t rule = ir_.add_rule();
  const Form form = ir_.rule(rule);
  written_.emplace(set, form);
  to_write_.emplace_back(rule, set);
  return form;
}

Form SchemaCompiler::write(const Alternatives& all) {
  std::vector<Regex> scalars;
  std::vector<Form> forms;
  for (const Conjunct& c : all) {
    fuel_.spend(4, "its schemas combine in too many ways");
    if (c.values) {
      write_values(values_of(c), scalars, forms);
      continue;
    }
    const bool anything = c.types == types::kAll && unlimited(c.array) && unlimited(c.object) &&
                          c.number.spec == NumberSpec{} && c.number.excluded.empty() &&
                          string_content(c.string) == forms_.any_text();
    if (anything) return forms_.any_value();
    if ((c.types & types::kNull) != 0) scalars.push_back(forms_.token("null"));
    if ((c.types & types::kFalse) != 0) scalars.push_back(forms_.token("false"));
    if ((c.types & types::kTrue) != 0) scalars.push_back(forms_.token("true"));
    if ((c.types & types::kNumber) != 0) scalars.push_back(forms_.number(number_content(c.number), c.number.spec, c.number.excluded));
    if ((c.types & types::kString) != 0) scalars.push_back(forms_.string(string_content(c.string)));
    if ((c.types & types::kArray) != 0) write_some(c.array, forms);
    if ((c.types & types::kObject) != 0) write_some(c.object, forms);
  }
  if (!scalars.empty() || forms.empty()) forms.push_back(ir_.regex(store_.alternative(scalars)));
  return ir_.alternative(forms);
}

Form SchemaCompiler::write_array(const ArrayLimits& array) {
  ListForm list{.prefix = {}, .min = array.min, .max = array.max};
  for (std::size_t i = 0; i < array.prefix.size() && i < array.max; ++i) list.prefix.push_back(write(array.prefix[i]));
  list.rest = write(array.rest);
  return forms_.list(std::move(list));
}

Form SchemaCompiler::write_object(const ObjectLimits& object) {
  std::vector<Region> regions;
  return forms_.object(object_form(object, regions));
}

ObjectForm SchemaCompiler::object_form(const ObjectLimits& object, std::vector<Region>& regions) {
  ObjectForm form{.properties = {}, .others = {}, .min = object.min, .max = object.max};
  form.order = options_.order == JsonOrder::any ? ObjectForm::Order::any : ObjectForm::Order::stated;
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  fuel_.spend((object.properties.size() + object.required.size()) / 2 + 1, "its objects have too many properties");
  for (const auto& property : object.properties) add(property.name);
  for (const std::string& name : object.required) add(name);
  for (const auto& more : object.additional) {
    for (const std::string& name : more.names) add(name);
  }
  for (const std::string& name : names) {
    const bool required = std::find(object.required.begin(), object.required.end(), name) != object.required.end();
    form.properties.push_back({forms_.key(plain(name)), write(schemas_of(object, name)), required});
  }
  Regex remaining = names_content(object.names);
  if (!names.empty()) remaining = store_.both(remaining, store_.negate(store_.literals(names, Spelling::json)));
  regions = regions_of(object, remaining);
  for (const Region& region : regions) form.others.push_back({forms_.key(region.names), write(region.schemas)});
  return form;
}

// Divides the names that the schema does not list (`remaining`) into regions. All names of a region match the same patterns of the
// schema, so the values of members with these names must satisfy the same schemas.
std::vector<SchemaCompiler::Region> SchemaCompiler::regions_of(const ObjectLimits& object, Regex remaining) {
  std::vector<Regex> patterns;
  const auto add = [&](Regex pattern) {
    if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(pattern);
  };
  for (const auto& pattern : object.patterns) add(pattern.key);
  for (const auto& more : object.additional) {
    for (const Regex pattern : more.patterns) add(pattern);
  }
  struct Matched {
    Regex names;
    std::vector<Regex> matched;
  };
  std::vector<Matched> regions{{remaining, {}}};
  for (const Regex pattern : patterns) {
    std::vector<Matched> next;
    for (const Matched& region : regions) {
      const Regex inside = store_.both(region.names, pattern), outside = store_.both(region.names, store_.negate(pattern));
      if (!store_.is_empty(inside)) {
        next.push_back({inside, region.matched});
        next.back().matched.push_back(pattern);
      }
      if (!store_.is_empty(outside)) next.push_back({outside, region.matched});
    }
    regions = std::move(next);
    if (regions.size() > 64) out_of_fuel("too many patterns of property names overlap");
  }
  std::vector<Region> out;
  for (const Matched& region : regions) {
    const auto matches = [&](Regex p) { return std::find(region.matched.begin(), region.matched.end(), p) != region.matched.end(); };
    SchemaSet schemas;
    for (const auto& pattern : object.patterns) {
      if (matches(pattern.key)) add_all(schemas, pattern.schemas);
    }
    for (const auto& more : object.additional) {
      if (std::none_of(more.patterns.begin(), more.patterns.end(), matches)) add_all(schemas, more.schemas);
    }
    if (std::find(schemas.begin(), schemas.end(), kNever) != schemas.end() || store_.is_empty(region.names)) continue;
    out.push_back({region.names, std::move(schemas)});
  }
  return out;
}

void SchemaCompiler::write_values(const std::vector<const Json*>& values, std::vector<Regex>& scalars, std::vector<Form>& forms) {
  std::vector<std::string> texts;
  for (const Json* value : values) {
    switch (value->type()) {
      case Type::null: scalars.push_back(forms_.token("null")); break;
      case Type::boolean: scalars.push_back(forms_.token(*value->boolean() ? "true" : "false")); break;
      case Type::number: scalars.push_back(number_value(*value)); break;
      case Type::string: texts.push_back(*value->string()); break;
      case Type::array:
      case Type::object:
        // Each further form costs more fuel, because the matcher may have to follow all forms at the same time.
        fuel_.spend(1 + forms.size() / 2, "too many of its values are objects and lists");
        forms.push_back(write_value(*value, 0));
        break;
    }
  }
  if (!texts.empty()) scalars.push_back(forms_.string(store_.literals(std::move(texts), Spelling::json_plain)));
}

Regex SchemaCompiler::number_value(const Json& value) {
  const auto number = decimal_of(value);
  if (!number || forms_.plain_numbers()) return forms_.token(value.dump());
  NumberSpec spec;
  spec.low = spec.high = NumberBound{*number, false};
  return forms_.number(store_.number(spec), spec);
}

Form SchemaCompiler::write_value(const Json& value, unsigned depth) {
  fuel_.spend(2, "its values are too long");
  switch (value.type()) {
    case Type::null: return ir_.regex(forms_.token("null"));
    case Type::boolean: return ir_.regex(forms_.token(*value.boolean() ? "true" : "false"));
    case Type::number: return ir_.regex(number_value(value));
    case Type::string: return ir_.regex(forms_.string(plain(*value.string())));
    case Type::array: {
      ListForm list;
      for (const Json& item : items_of(value)) list.prefix.push_back(write_value(item, depth + 1));
      list.min = list.max = static_cast<std::uint32_t>(list.prefix.size());
      return forms_.list(std::move(list));
    }
    case Type::object: {
      ObjectForm object;
      for (const auto& [name, member] : members_of(value)) {
        object.properties.push_back({forms_.key(plain(name)), write_value(member, depth + 1), true});
      }
      return forms_.object(std::move(object));
    }
  }
  return kNone;
}

}  // namespace tessera::grammar
