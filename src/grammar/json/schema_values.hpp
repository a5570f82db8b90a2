// JSON values as JSON Schema takes them: numbers by value, and keywords that may hold another type than they should.
#pragma once

#include <optional>
#include <span>

#include <tessera/json/json.hpp>

#include "grammar/regex/number.hpp"

namespace tessera::grammar {

// The elements of an array, the members of an object; none of any other value.
[[nodiscard]] std::span<const Json> items_of(const Json& value) noexcept;
[[nodiscard]] std::span<const Json::Member> members_of(const Json& value) noexcept;

[[nodiscard]] inline bool is_true(const Json& value) noexcept { return value.boolean() != nullptr && *value.boolean(); }

// nullopt: not a number, or one with more digits than a Decimal has.
[[nodiscard]] std::optional<Decimal> decimal_of(const Json& value);

// Numbers are the same by value, objects without order.
[[nodiscard]] bool same_value(const Json& a, const Json& b);

}  // namespace tessera::grammar
