// What a schema asks of a value, as alternatives of conjunctions: a value is valid if one of the alternatives holds, and an
// alternative is one set of limits for each type. Everything that applies in one place (allOf, $ref, siblings) is merged
// into it; schemas of items and properties stay sets of the schemas that they must all satisfy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/json/json.hpp>

#include "grammar/regex/regex_store.hpp"

namespace tessera::grammar {

// A schema of the document, or what it does not allow: id * 2, + 1 where negated.
using Signed = std::uint32_t;
using SchemaSet = std::vector<Signed>;  // all of them hold; sorted, each once; empty: anything

void add_all(SchemaSet& into, const SchemaSet& more);

namespace types {
inline constexpr std::uint8_t kNull = 1, kFalse = 2, kTrue = 4, kNumber = 8, kString = 16, kArray = 32, kObject = 64, kAll = 127;
}

struct NumberLimits {
  NumberSpec spec;
  std::vector<NumberSpec> excluded;
};

struct StringLimits {
  std::uint32_t min = 0, max = kUnlimited;  // characters
  Regex content = RegexStore::kAll;         // of the text between the quotes
};

struct ArrayLimits {
  // Some item, the one at `from` or one behind it, satisfies `schemas`. One item may do so for several.
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
    Regex key;  // which names
    SchemaSet schemas;
  };
  // additionalProperties of one schema: for the names that its own properties and patterns leave.
  struct Additional {
    std::vector<std::string> names;
    std::vector<Regex> patterns;
    SchemaSet schemas;
  };
  // Some member whose name is in `key` satisfies `schemas`. One member may do so for several.
  struct Some {
    Regex key;
    SchemaSet schemas;
    bool operator==(const Some&) const noexcept = default;
  };
  std::vector<Property> properties;  // in the order in which they are stated
  std::vector<std::string> required;
  std::vector<Pattern> patterns;
  std::vector<Additional> additional;
  std::vector<Some> some;
  SchemaSet names;  // propertyNames
  std::uint32_t min = 0, max = kUnlimited;
};

struct Conjunct {
  std::uint8_t types = types::kAll;
  std::optional<std::vector<const Json*>> values;  // these only, as far as the rest allows them
  NumberLimits number;
  StringLimits string;
  ArrayLimits array;
  ObjectLimits object;
};

using Alternatives = std::vector<Conjunct>;

// Both at once. Fails where two steps have no common multiple that an automaton can count.
[[nodiscard]] Conjunct intersect(RegexStore& store, const Conjunct& a, const Conjunct& b);

}  // namespace tessera::grammar
