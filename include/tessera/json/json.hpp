// A JSON value: what messages, tools and template arguments are made of. Objects keep their order, as templates print
// them in it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/core/result.hpp>

namespace tessera {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // a key stands once; set() keeps it so

  // An integer that 64 bits do not hold: its digits, which templates print and do not compute with.
  struct BigInteger {
    std::string digits;
    bool operator==(const BigInteger&) const = default;
  };

  Json() noexcept = default;                                             // null
  Json(bool value) noexcept : value_(value) {}                           // NOLINT: implicit on purpose, as the others
  Json(int value) noexcept : value_(std::int64_t{value}) {}              // NOLINT
  Json(std::int64_t value) noexcept : value_(value) {}                   // NOLINT
  Json(double value) noexcept : value_(value) {}                         // NOLINT
  Json(BigInteger value) noexcept : value_(std::move(value)) {}          // NOLINT
  Json(const char* value) : value_(std::string(value)) {}                // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}           // NOLINT
  Json(std::string value) noexcept : value_(std::move(value)) {}         // NOLINT
  Json(Array value) noexcept : value_(std::move(value)) {}               // NOLINT
  Json(Object value) noexcept : value_(std::move(value)) {}              // NOLINT
  [[nodiscard]] static Json object() { return Json(Object{}); }
  [[nodiscard]] static Json array() { return Json(Array{}); }

  // Text to a value (RFC 8259), nested at most 200 deep. Of a key that stands twice the last value counts. Errors are
  // invalid_argument with line and column as place.
  [[nodiscard]] static Result<Json> parse(std::string_view text) noexcept;
  // One line, as Python's json.dumps with ensure_ascii=False prints it: ", " and ": " between. Nested at most 1000 deep;
  // what is deeper is printed as null.
  [[nodiscard]] std::string dump() const;

  [[nodiscard]] bool is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] const bool* boolean() const noexcept { return std::get_if<bool>(&value_); }
  [[nodiscard]] const std::int64_t* integer() const noexcept { return std::get_if<std::int64_t>(&value_); }
  [[nodiscard]] const BigInteger* big_integer() const noexcept { return std::get_if<BigInteger>(&value_); }
  [[nodiscard]] const double* number() const noexcept { return std::get_if<double>(&value_); }  // not of an integer
  [[nodiscard]] const std::string* string() const noexcept { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const Array* elements() const noexcept { return std::get_if<Array>(&value_); }
  [[nodiscard]] const Object* members() const noexcept { return std::get_if<Object>(&value_); }
  [[nodiscard]] Array* elements() noexcept { return std::get_if<Array>(&value_); }
  [[nodiscard]] Object* members() noexcept { return std::get_if<Object>(&value_); }

  // The value of a key; nullptr if this is no object or has no such key.
  [[nodiscard]] const Json* find(std::string_view key) const noexcept;
  // Sets a key, in its old place or at the end. A value that is no object becomes one.
  Json& set(std::string_view key, Json value);

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, BigInteger, std::string, Array, Object> value_;
};

}  // namespace tessera
