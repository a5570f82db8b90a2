// Decides whether any value satisfies a conjunction of limits, and whether a given value does. If the first question would take too long,
// the answer is yes: a conjunction is called empty only if that is certain.
#include <algorithm>

#include "grammar/json/schema_compiler.hpp"
#include "json/spelling.hpp"

namespace tessera::grammar {

namespace {

using Type = Json::Type;

// Returns the number written without an exponent, as the number automaton reads it.
std::string plain_digits(const Decimal& d) {
  std::string out = d.negative ? "-" : "";
  out += d.whole.empty() ? "0" : d.whole;
  if (!d.fraction.empty()) out += "." + d.fraction;
  return out;
}

// Returns the string as JSON writes it, without its quotes.
std::string spelled(const std::string& text) {
  std::string out = detail::json_string(text);
  out.pop_back();
  out.erase(0, 1);
  return out;
}

}  // namespace

Regex SchemaCompiler::string_content(const StringLimits& limits) {
  if (limits.min > limits.max) return RegexStore::kEmpty;
  Regex any = forms_.any_text();
  if (limits.min > 0 || limits.max != kUnlimited) {
    any = store_.repeat(store_.character(any_char(), Spelling::json), limits.min, limits.max);
  }
  return store_.both(any, limits.content);
}

Regex SchemaCompiler::number_content(const NumberLimits& limits) {
  Regex out = store_.number(limits.spec);
  for (const NumberSpec& spec : limits.excluded) {
    // If reads_all_exponents() is false, the automaton of the excluded numbers does not recognise every way to write these numbers with an
    // exponent. Then exponents are not allowed at all, because otherwise an excluded number could get through.
    if (limits.spec.allows_exponent() && !spec.reads_all_exponents()) {
      ByteSet digits = ByteSet::range('0', '9');
      digits.add('-');
      digits.add('.');
      out = store_.both(out, store_.star(store_.bytes(digits)));
    }
    out = store_.both(out, store_.negate(store_.number(spec)));
  }
  return out;
}

bool SchemaCompiler::has_name(Regex key, const std::string& name) {
  return store_.matches(key, spelled(name));
}

SchemaSet SchemaCompiler::schemas_of(const ObjectLimits& object, const std::string& name) {
  SchemaSet out;
  for (const auto& property : object.properties) {
    if (property.name == name) add_all(out, property.schemas);
  }
  if (object.patterns.empty() && object.additional.empty() && object.names.empty()) return out;
  const std::string content = spelled(name);
  for (const auto& pattern : object.patterns) {
    if (store_.matches(pattern.key, content)) add_all(out, pattern.schemas);
  }
  for (const auto& more : object.additional) {
    if (std::find(more.names.begin(), more.names.end(), name) != more.names.end()) continue;
    if (std::any_of(more.patterns.begin(), more.patterns.end(), [&](Regex p) { return store_.matches(p, content); })) continue;
    add_all(out, more.schemas);
  }
  if (!object.names.empty() && !store_.matches(names_content(object.names), content)) add_all(out, {kNever});
  return out;
}

Regex SchemaCompiler::names_content(const SchemaSet& names) {
  if (names.empty()) return forms_.any_text();
  std::vector<Regex> parts;
  for (const Conjunct& c : alternatives(names)) {
    if (c.values) {
      for (const Json* value : values_of(c)) {
        if (const std::string* name = value->string()) parts.push_back(text(*name));
      }
    } else if ((c.types & types::kString) != 0) {
      parts.push_back(string_content(c.string));
    }
  }
  return store_.alternative(parts);
}

bool SchemaCompiler::is_empty(const SchemaSet& set, unsigned depth) {
  if (set.empty() || depth == 0) return false;
  if (std::find(set.begin(), set.end(), kNever) != set.end()) return true;
  if (const auto found = emptiness_.find(set); found != emptiness_.end()) return found->second;
  for (const Signed s : set) {
    // The schema refers to itself, so it is not known to be empty.
    if (std::find(open_.begin(), open_.end(), s) != open_.end()) return false;
  }
  bool empty = false;
  try {
    const Alternatives all = alternatives(set);
    empty = std::all_of(all.begin(), all.end(), [&](const Conjunct& c) { return is_empty(c, depth - 1); });
  } catch (Failure& failure) {
    if (failure.error.code() != ErrorCode::unsupported) throw;
  }
  if (empty || depth == 3) emptiness_.emplace(set, empty);
  return empty;
}

bool SchemaCompiler::is_empty(const Conjunct& c, unsigned depth) {
  fuel_.spend(4, "its schemas combine in too many ways");
  if (c.values) return values_of(c).empty();
  if ((c.types & (types::kNull | types::kTrue | types::kFalse)) != 0) return false;
  if ((c.types & types::kNumber) != 0 && !store_.is_empty(number_content(c.number))) return false;
  if ((c.types & types::kString) != 0 && !store_.is_empty(string_content(c.string))) return false;
  if ((c.types & types::kArray) != 0) {
    bool empty = c.array.min > c.array.max;
    for (std::size_t i = 0; i < c.array.prefix.size() && i < c.array.min && !empty; ++i) {
      empty = is_empty(c.array.prefix[i], depth);
    }
    if (!empty && c.array.min > c.array.prefix.size()) empty = is_empty(c.array.rest, depth);
    for (const auto& some : c.array.some) empty = empty || some.from >= c.array.max || is_empty(some.schemas, depth);
    if (!empty) return false;
  }
  if ((c.types & types::kObject) != 0) {
    bool empty = c.object.min > c.object.max || c.object.required.size() > c.object.max;
    for (std::size_t i = 0; i < c.object.required.size() && !empty; ++i) {
      empty = is_empty(schemas_of(c.object, c.object.required[i]), depth);
    }
    for (const auto& some : c.object.some) empty = empty || c.object.max == 0 || is_empty(some.schemas, depth);
    if (!empty) return false;
  }
  return true;
}

std::vector<const Json*> SchemaCompiler::values_of(const Conjunct& c) {
  Conjunct rest = c;
  rest.values.reset();
  std::vector<const Json*> out;
  for (const Json* value : *c.values) {
    fuel_.spend(1, "its lists of values are too long");
    if (satisfies(*value, rest)) out.push_back(value);
  }
  return out;
}

bool SchemaCompiler::satisfies(const Json& value, const SchemaSet& set) {
  if (set.empty()) return true;
  const Alternatives all = alternatives(set);
  return std::any_of(all.begin(), all.end(), [&](const Conjunct& c) { return satisfies(value, c); });
}

bool SchemaCompiler::satisfies(const Json& value, const Conjunct& c) {
  if (c.values && std::none_of(c.values->begin(), c.values->end(), [&](const Json* v) { return same_value(*v, value); })) {
    return false;
  }
  switch (value.type()) {
    case Type::null: return (c.types & types::kNull) != 0;
    case Type::boolean: return (c.types & (*value.boolean() ? types::kTrue : types::kFalse)) != 0;
    case Type::number: {
      if ((c.types & types::kNumber) == 0) return false;
      if (c.number.spec == NumberSpec{} && c.number.excluded.empty()) return true;
      const auto number = decimal_of(value);
      return number && store_.matches(number_content(c.number), plain_digits(*number));
    }
    case Type::string: {
      if ((c.types & types::kString) == 0) return false;
      const Regex content = string_content(c.string);
      return content == forms_.any_text() || store_.matches(content, spelled(*value.string()));
    }
    case Type::array: {
      const auto items = items_of(value);
      if ((c.types & types::kArray) == 0 || items.size() < c.array.min || items.size() > c.array.max) return false;
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (!satisfies(items[i], i < c.array.prefix.size() ? c.array.prefix[i] : c.array.rest)) return false;
      }
      return std::all_of(c.array.some.begin(), c.array.some.end(), [&](const auto& some) {
        const auto begin = items.begin() + std::min<std::ptrdiff_t>(some.from, std::ssize(items));
        return std::any_of(begin, items.end(), [&](const Json& item) { return satisfies(item, some.schemas); });
      });
    }
    case Type::object: {
      const ObjectLimits& object = c.object;
      const auto members = members_of(value);
      if ((c.types & types::kObject) == 0 || members.size() < object.min || members.size() > object.max) return false;
      for (const std::string& name : object.required) {
        if (value.find(name) == nullptr) return false;
      }
      for (const auto& some : object.some) {
        const auto is_one = [&](const auto& m) { return has_name(some.key, m.first) && satisfies(m.second, some.schemas); };
        if (std::none_of(members.begin(), members.end(), is_one)) return false;
      }
      return std::all_of(members.begin(), members.end(), [&](const auto& member) {
        return satisfies(member.second, schemas_of(object, member.first));
      });
    }
  }
  return false;
}

}  // namespace tessera::grammar
