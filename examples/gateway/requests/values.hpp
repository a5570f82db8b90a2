// Reads members of JSON values without exceptions: a member that is absent or of another type has no value.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/json/json.hpp>

namespace gateway {

[[nodiscard]] inline std::optional<double> number_of(const tessera::Json* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* integer = value->integer()) return static_cast<double>(*integer);
  if (const auto* number = value->number()) return *number;
  if (const auto* written = value->written_number()) return std::strtod(written->text.c_str(), nullptr);
  return std::nullopt;
}
[[nodiscard]] inline std::optional<double> number_at(const tessera::Json& value, std::string_view key) { return number_of(value.find(key)); }

// Returns a member that counts something; 0 if it is absent or no whole number from 0 to 2^53. A server's answer may hold any number.
[[nodiscard]] inline std::uint64_t count_at(const tessera::Json& value, std::string_view key) {
  const double number = number_at(value, key).value_or(0.0);
  return number >= 0.0 && number <= 9007199254740992.0 && std::trunc(number) == number ? static_cast<std::uint64_t>(number) : 0;
}

[[nodiscard]] inline const std::string* text_at(const tessera::Json& value, std::string_view key) {
  const tessera::Json* found = value.find(key);
  return found != nullptr ? found->string() : nullptr;
}
[[nodiscard]] inline bool is_true(const tessera::Json& value, std::string_view key) {
  const tessera::Json* found = value.find(key);
  return found != nullptr && found->boolean() != nullptr && *found->boolean();
}
// Returns whether the member is there and not null.
[[nodiscard]] inline bool has(const tessera::Json& value, std::string_view key) {
  const tessera::Json* found = value.find(key);
  return found != nullptr && !found->is_null();
}
// Returns choices[0] of an answer; nullptr if there is none.
[[nodiscard]] inline const tessera::Json* first_choice(const tessera::Json& answer) {
  const tessera::Json* choices = answer.find("choices");
  return choices != nullptr && choices->elements() != nullptr && !choices->elements()->empty() ? &choices->elements()->front() : nullptr;
}

}  // namespace gateway
