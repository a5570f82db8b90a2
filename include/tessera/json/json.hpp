// A JSON value: what messages, tools, template arguments and schemas are made of. Objects keep their order, as templates
// print them in it.
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

// What Json::parse() does where RFC 8259 leaves a choice.
struct JsonParseOptions {
  // Keeps numbers that are no 64-bit integer as they are written ("1.50", "-0"): Json::WrittenNumber instead of a double.
  bool numbers_as_written = false;
  bool refuse_repeated_keys = false;  // an object's key that stands twice is an error; else its last value counts
  bool refuse_half_pairs = false;     // half a surrogate pair ("\ud83d") is an error; else U+FFFD stands for it
  int deepest = 200;                  // arrays and objects that may stand around a value; more than 1000 count as 1000
};

class Json {
 public:
  enum class Type : std::uint8_t { null, boolean, number, string, array, object };
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // a key stands once; set() keeps it so

  // A number kept as its text: an integer that 64 bits do not hold, and what JsonParseOptions::numbers_as_written keeps.
  // Templates print it and do not compute with it.
  struct WrittenNumber {
    std::string text;
    [[nodiscard]] bool is_integer() const noexcept { return text.find_first_of(".eE") == std::string::npos; }
    bool operator==(const WrittenNumber&) const = default;
  };

  Json() noexcept = default;                                             // null
  Json(bool value) noexcept : value_(value) {}                           // NOLINT: implicit on purpose, as the others
  Json(int value) noexcept : value_(std::int64_t{value}) {}              // NOLINT
  Json(std::int64_t value) noexcept : value_(value) {}                   // NOLINT
  Json(double value) noexcept : value_(value) {}                         // NOLINT
  Json(WrittenNumber value) noexcept : value_(std::move(value)) {}       // NOLINT
  Json(const char* value) : value_(std::string(value)) {}                // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}           // NOLINT
  Json(std::string value) noexcept : value_(std::move(value)) {}         // NOLINT
  Json(Array value) noexcept : value_(std::move(value)) {}               // NOLINT
  Json(Object value) noexcept : value_(std::move(value)) {}              // NOLINT
  [[nodiscard]] static Json object() { return Json(Object{}); }
  [[nodiscard]] static Json array() { return Json(Array{}); }

  // Reads a text (RFC 8259). Errors: invalid_argument, with line and column as place.
  [[nodiscard]] static Result<Json> parse(std::string_view text, const JsonParseOptions& options = {}) noexcept;
  // One line, as Python's json.dumps with ensure_ascii=False prints it: ", " and ": " between. Nested at most 1000 deep;
  // what is deeper is printed as null.
  [[nodiscard]] std::string dump() const;

  [[nodiscard]] Type type() const noexcept;
  [[nodiscard]] bool is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] const bool* boolean() const noexcept { return std::get_if<bool>(&value_); }
  // A number is one of these three.
  [[nodiscard]] const std::int64_t* integer() const noexcept { return std::get_if<std::int64_t>(&value_); }
  [[nodiscard]] const double* number() const noexcept { return std::get_if<double>(&value_); }
  [[nodiscard]] const WrittenNumber* written_number() const noexcept { return std::get_if<WrittenNumber>(&value_); }
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
  std::variant<std::monostate, bool, std::int64_t, double, WrittenNumber, std::string, Array, Object> value_;
};

}  // namespace tessera
