// JSON as it was written: members in their order, numbers as text. Bounded in depth; a key that occurs twice is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::grammar {

struct JsonMember;

struct Json {
  enum class Type : std::uint8_t { null, boolean, number, string, array, object };
  Type type = Type::null;
  bool boolean = false;
  std::string text;  // of a string its value, of a number its digits
  std::vector<Json> items;
  std::vector<JsonMember> members;

  [[nodiscard]] const Json* find(std::string_view key) const noexcept;
  [[nodiscard]] bool is(Type t) const noexcept { return type == t; }
};

struct JsonMember {
  std::string name;
  Json value;
};

inline constexpr std::size_t kDeepestJson = 256;

// Fails (invalid_argument) with the byte.
[[nodiscard]] Json parse_json(std::string_view text);

// As JSON Schema compares: numbers by value, objects without order.
[[nodiscard]] bool same_value(const Json& a, const Json& b);

// A string as JSON, with its quotes.
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace tessera::grammar
