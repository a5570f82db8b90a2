#include "grammar/json/schema_values.hpp"

#include <algorithm>

namespace tessera::grammar {

std::span<const Json> items_of(const Json& value) noexcept {
  return value.elements() == nullptr ? std::span<const Json>() : *value.elements();
}

std::span<const Json::Member> members_of(const Json& value) noexcept {
  return value.members() == nullptr ? std::span<const Json::Member>() : *value.members();
}

std::optional<Decimal> decimal_of(const Json& value) {
  return value.type() == Json::Type::number ? Decimal::parse(value.dump()) : std::nullopt;
}

bool same_value(const Json& a, const Json& b) {
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Json::Type::null:
    case Json::Type::boolean:
    case Json::Type::string: return a == b;
    case Json::Type::number: {
      const auto x = decimal_of(a), y = decimal_of(b);
      return x && y ? *x == *y : a == b;
    }
    case Json::Type::array: {
      const auto x = items_of(a), y = items_of(b);
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_value);
    }
    case Json::Type::object: {
      const auto members = members_of(a);
      return members.size() == members_of(b).size() && std::all_of(members.begin(), members.end(), [&](const auto& member) {
        const Json* other = b.find(member.first);
        return other != nullptr && same_value(member.second, *other);
      });
    }
  }
  return false;
}

}  // namespace tessera::grammar
