#include "grammar/json/conjunct.hpp"

#include <algorithm>
#include <numeric>

#include "grammar/fuel.hpp"
#include "grammar/json/schema_values.hpp"

namespace tessera::grammar {

void add_all(SchemaSet& into, const SchemaSet& more) {
  if (more.empty()) return;
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

namespace {

std::optional<NumberBound> stricter(const std::optional<NumberBound>& a, const std::optional<NumberBound>& b, int sign) {
  if (!a) return b;
  if (!b) return a;
  const int c = a->value.compare(b->value) * sign;
  if (c == 0) return a->exclusive ? a : b;
  return c > 0 ? a : b;
}

NumberStep common(NumberStep a, NumberStep b) {
  const auto scaled = [](NumberStep& step, std::uint32_t scale) {
    for (; step.scale < scale; ++step.scale) {
      if (step.units >> 55 != 0) fail(ErrorCode::unsupported, "multipleOf: these steps have too large a common multiple");
      step.units *= 10;
    }
  };
  scaled(a, b.scale);
  scaled(b, a.scale);
  const std::uint64_t other = b.units / std::gcd(a.units, b.units);
  std::uint64_t units = 0;
  if (__builtin_mul_overflow(a.units, other, &units) || units >> 59 != 0) {
    fail(ErrorCode::unsupported, "multipleOf: these steps have too large a common multiple");
  }
  return {units, a.scale};
}

void merge(NumberLimits& into, const NumberLimits& other) {
  NumberSpec& spec = into.spec;
  spec.integer = spec.integer || other.spec.integer;
  spec.low = stricter(spec.low, other.spec.low, 1);
  spec.high = stricter(spec.high, other.spec.high, -1);
  if (other.spec.step) spec.step = spec.step ? common(*spec.step, *other.spec.step) : other.spec.step;
  into.excluded.insert(into.excluded.end(), other.excluded.begin(), other.excluded.end());
}

template <class Some>
void merge(std::vector<Some>& into, const std::vector<Some>& other) {
  for (const Some& some : other) {
    if (std::find(into.begin(), into.end(), some) == into.end()) into.push_back(some);
  }
}

void merge(ArrayLimits& into, const ArrayLimits& other) {
  const std::size_t size = std::max(into.prefix.size(), other.prefix.size());
  while (into.prefix.size() < size) into.prefix.push_back(into.rest);
  for (std::size_t i = 0; i < size; ++i) add_all(into.prefix[i], i < other.prefix.size() ? other.prefix[i] : other.rest);
  add_all(into.rest, other.rest);
  merge(into.some, other.some);
  into.min = std::max(into.min, other.min);
  into.max = std::min(into.max, other.max);
}

void merge(ObjectLimits& into, const ObjectLimits& other) {
  for (const auto& property : other.properties) {
    const auto at = std::find_if(into.properties.begin(), into.properties.end(),
                                 [&](const auto& p) { return p.name == property.name; });
    if (at == into.properties.end()) {
      into.properties.push_back(property);
    } else {
      add_all(at->schemas, property.schemas);
    }
  }
  for (const std::string& name : other.required) {
    if (std::find(into.required.begin(), into.required.end(), name) == into.required.end()) into.required.push_back(name);
  }
  for (const auto& pattern : other.patterns) {
    const auto at = std::find_if(into.patterns.begin(), into.patterns.end(),
                                 [&](const auto& p) { return p.key == pattern.key; });
    if (at == into.patterns.end()) {
      into.patterns.push_back(pattern);
    } else {
      add_all(at->schemas, pattern.schemas);
    }
  }
  into.additional.insert(into.additional.end(), other.additional.begin(), other.additional.end());
  merge(into.some, other.some);
  add_all(into.names, other.names);
  into.min = std::max(into.min, other.min);
  into.max = std::min(into.max, other.max);
}

}  // namespace

Conjunct intersect(RegexStore& store, const Conjunct& a, const Conjunct& b) {
  Conjunct out = a;
  out.types &= b.types;
  if (b.values) {
    if (out.values) {
      std::erase_if(*out.values, [&](const Json* value) {
        return std::none_of(b.values->begin(), b.values->end(), [&](const Json* other) { return same_value(*value, *other); });
      });
    } else {
      out.values = b.values;
    }
  }
  if ((out.types & types::kNumber) != 0) merge(out.number, b.number);
  if ((out.types & types::kString) != 0) {
    out.string.min = std::max(out.string.min, b.string.min);
    out.string.max = std::min(out.string.max, b.string.max);
    out.string.content = store.both(out.string.content, b.string.content);
  }
  if ((out.types & types::kArray) != 0) merge(out.array, b.array);
  if ((out.types & types::kObject) != 0) merge(out.object, b.object);
  return out;
}

}  // namespace tessera::grammar
