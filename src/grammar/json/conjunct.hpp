// The demands of a schema on a value, as alternatives of conjunctions. A value is valid if one of the alternatives holds; an alternative is
// one set of limits for each type. Everything that applies in one place (allOf, $ref, siblings) is merged into the alternative. Schemas of
// items and properties stay sets of schemas that must all be satisfied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/json/json.hpp>

#include "grammar/regex/regex_store.hpp"

namespace tessera::grammar {

// A schema of the document, or its negation: id * 2, plus 1 if negated.
using Signed = std::uint32_t;
using SchemaSet = std::vector<Signed>;  // schemas that all hold; sorted, without doubles; empty: anything

void add_all(SchemaSet& into, const SchemaSet& more);

namespace types {
inline constexpr std::uint8_t kNull = 1, kFalse = 2, kTrue = 4, kNumber = 8, kString = 16, kArray = 32, kObject = 64, kAll = 127;
}

struct NumberLimits {
  NumberSpec spec;
  std::vector<NumberSpec> excluded;
};

struct StringLimits {
  std::uint32_t min = 0, max = kUnlimited;  // number of characters
  Regex content = RegexStore::kAll;         // the text between the quotes
};

struct ArrayLimits {
  // Some item, at `from` or behind, satisfies `schemas`. One item may satisfy several of these demands.
  struct Some {
    std::uint32_t from = 0;
    SchemaSet schemas;
    bool operator==(const Some&) const noexcept = default;
  };
  std::vector<SchemaSet> prefix;
  SchemaSet rest;
  std::vector<Some> some;
  std::uint32_t min = 0, max = kUnlimited;
};

struct ObjectLimits {
  struct Property {
    std::string name;
    SchemaSet schemas;
  };
  struct Pattern {
    std::string pattern;
    Regex key;  // the names
    SchemaSet schemas;
  };
  // additionalProperties of one schema: for names that the schema's own properties and patterns leave.
  struct Additional {
    std::vector<std::string> names;
    std::vector<Regex> patterns;
    SchemaSet schemas;
  };
  // Some member whose name is in `key` satisfies `schemas`. One member may satisfy several of these demands.
  struct Some {
    Regex key;
    SchemaSet schemas;
    bool operator==(const Some&) const noexcept = default;
  };
  std::vector<Property> properties;  // in the stated order
  std::vector<std::string> required;
  std::vector<Pattern> patterns;
  std::vector<Additional> additional;
  std::vector<Some> some;
  SchemaSet names;  // propertyNames
  std::uint32_t min = 0, max = kUnlimited;
};

struct Conjunct {
  std::uint8_t types = types::kAll;
  std::optional<std::vector<const Json*>> values;  // only these values, as far as the other limits allow them
  NumberLimits number;
  StringLimits string;
  ArrayLimits array;
  ObjectLimits object;
};

using Alternatives = std::vector<Conjunct>;

// Returns the limits of both. Fails if two steps have no common multiple that an automaton can count.
[[nodiscard]] Conjunct intersect(RegexStore& store, const Conjunct& a, const Conjunct& b);

}  // namespace tessera::grammar
