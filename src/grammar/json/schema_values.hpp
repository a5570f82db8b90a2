// JSON values as JSON Schema sees them: numbers are compared by value, and a keyword's value may have the wrong type.
#pragma once

#include <optional>
#include <span>

#include <tessera/json/json.hpp>

#include "grammar/regex/number.hpp"

namespace tessera::grammar {

// Return the elements of an array, and the members of an object. For a value of another type the span is empty.
[[nodiscard]] std::span<const Json> items_of(const Json& value) noexcept;
[[nodiscard]] std::span<const Json::Member> members_of(const Json& value) noexcept;

[[nodiscard]] inline bool is_true(const Json& value) noexcept { return value.boolean() != nullptr && *value.boolean(); }

// Returns the value as a decimal number; nullopt if it is not a number, or has more digits than a Decimal can hold.
[[nodiscard]] std::optional<Decimal> decimal_of(const Json& value);

// Returns whether two values are equal. Numbers are compared by value, and the order of an object's members does not matter.
[[nodiscard]] bool same_value(const Json& a, const Json& b);

}  // namespace tessera::grammar
