// JSON values as JSON Schema takes them: numbers by value, and keywords whose value may have a wrong type.
#pragma once

#include <optional>
#include <span>

#include <tessera/json/json.hpp>

#include "grammar/regex/number.hpp"

namespace tessera::grammar {

// Return the elements of an array, and the members of an object; nothing for other values.
[[nodiscard]] std::span<const Json> items_of(const Json& value) noexcept;
[[nodiscard]] std::span<const Json::Member> members_of(const Json& value) noexcept;

[[nodiscard]] inline bool is_true(const Json& value) noexcept { return value.boolean() != nullptr && *value.boolean(); }

// Returns a number; nullopt if the value is no number, or has more digits than a Decimal.
[[nodiscard]] std::optional<Decimal> decimal_of(const Json& value);

// Compares numbers by value, and objects without order.
[[nodiscard]] bool same_value(const Json& a, const Json& b);

}  // namespace tessera::grammar
