// The demands of a schema on a value, as a list of alternatives. A value is valid if it satisfies one alternative. An alternative
// (Conjunct) has one set of limits for each JSON type. All keywords that apply to the value (siblings, allOf, $ref) are merged into the
// alternative's limits. Schemas of items and properties are not merged but kept as a set, all of which must hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/json/json.hpp>

#include "grammar/regex/regex_store.hpp"

namespace tessera::grammar {

// A schema of the document, or the negation of one: its id times 2, plus 1 if it is negated.
using Signed = std::uint32_t;
using SchemaSet = std::vector<Signed>;  // schemas that must all hold, sorted, none twice; empty: anything is valid

void add_all(SchemaSet& into, const SchemaSet& more);

namespace types {
inline constexpr std::uint8_t kNull = 1, kFalse = 2, kTrue = 4, kNumber = 8, kString = 16, kArray = 32, kObject = 64, kAll = 127;
}

struct NumberLimits {
  NumberSpec spec;
  std::vector<NumberSpec> excluded;
};

struct StringLimits {
  std::uint32_t min = 0, max = kUnlimited;  // least and largest number of characters
  Regex content = RegexStore::kAll;         // the text between the quotes
};

struct ArrayLimits {
  // A demand that at least one item, from index `from` on, satisfies `schemas`. The same item may satisfy several demands.
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
    Regex key;  // matches the names to which the pattern applies
    SchemaSet schemas;
  };
  // One additionalProperties keyword. The keyword applies to names that are neither in `names` nor match `patterns` (the schema's own
  // properties and patterns).
  struct Additional {
    std::vector<std::string> names;
    std::vector<Regex> patterns;
    SchemaSet schemas;
  };
  // A demand that at least one member with a name in `key` satisfies `schemas`. The same member may satisfy several demands.
  struct Some {
    Regex key;
    SchemaSet schemas;
    bool operator==(const Some&) const noexcept = default;
  };
  std::vector<Property> properties;  // in the order in which the schema lists them
  std::vector<std::string> required;
  std::vector<Pattern> patterns;
  std::vector<Additional> additional;
  std::vector<Some> some;
  SchemaSet names;  // schemas for all names (propertyNames)
  std::uint32_t min = 0, max = kUnlimited;
};

struct Conjunct {
  std::uint8_t types = types::kAll;
  // If set, only values of this list are valid, and only those that the other limits allow.
  std::optional<std::vector<const Json*>> values;
  NumberLimits number;
  StringLimits string;
  ArrayLimits array;
  ObjectLimits object;
};

using Alternatives = std::vector<Conjunct>;

// Returns the conjunction of two sets of limits. Fails if two multipleOf have no common multiple that an automaton can count.
[[nodiscard]] Conjunct intersect(RegexStore& store, const Conjunct& a, const Conjunct& b);

}  // namespace tessera::grammar
