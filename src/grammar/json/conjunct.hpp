// The demands of a schema on a value, as a list of alternatives: a value is valid if it satisfies at least one of them. An alternative
// (Conjunct) has limits for each JSON type: bounds for numbers, lengths for strings, and so on. All keywords that apply to the same value
// (siblings, allOf, $ref) are merged into these limits. The schemas of a list's items and of an object's properties are not merged; they
// are kept as sets of schemas (SchemaSet), all of which must hold.
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
  // One additionalProperties keyword: the members to which it applies must satisfy `schemas`. It applies to each member whose name is not
  // in `names` and matches none of `patterns`. (These are the names in properties and the patterns in patternProperties of the same
  // schema.)
  struct Additional {
    std::vector<std::string> names;
    std::vector<Regex> patterns;
    SchemaSet schemas;
  };
  // A demand that the object has at least one member whose name matches `key` and whose value satisfies `schemas`. One member may satisfy
  // several demands.
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
