// A JSON value of any type. The library uses it for messages, tools, template arguments and schemas. Objects keep the order of their
// members, because templates print them in that order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/core/result.hpp>

namespace tessera {

// Options of Json::parse(), for cases in which RFC 8259 leaves the choice to the parser.
struct JsonParseOptions {
  // True: numbers that are not 64-bit integers keep their spelling ("1.50", "-0") and become Json::WrittenNumber. False: they become
  // double, except integers.
  bool numbers_as_written = false;
  bool refuse_repeated_keys = false;  // true: a key that an object has twice is an error; false: its last value counts
  bool refuse_half_pairs = false;     // true: half a surrogate pair ("\ud83d") is an error; false: it becomes U+FFFD
  int deepest = 200;                  // most arrays and objects around a value (nesting); at most 1000
  std::size_t most_values = SIZE_MAX;  // most values in a text. Limits the memory: at most some 110 bytes for each value, besides the text
};

// A JSON value: null, a boolean, a number, a string, an array or an object.
//
//   Json tool = Json::object();
//   tool.set("name", "add");
//   tool.set("strict", true);
//   auto parsed = Json::parse(R"({"name": "add"})");
//   if (const Json* name = parsed->find("name"); name && name->string()) std::fputs(name->string()->c_str(), stdout);
class Json {
 public:
  enum class Type : std::uint8_t { null, boolean, number, string, array, object };
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // a key occurs once, as set() ensures

  // A number that is kept as its text, for two cases: an integer that does not fit 64 bits, and a number of a text that was parsed with
  // JsonParseOptions::numbers_as_written. Templates can print such a number, but not compute with it.
  struct WrittenNumber {
    std::string text;
    [[nodiscard]] bool is_integer() const noexcept { return text.find_first_of(".eE") == std::string::npos; }
    bool operator==(const WrittenNumber&) const = default;
  };

  Json() noexcept = default;                                             // null
  Json(const Json&) = default;  // needs stack for each level of nesting
  Json(Json&&) noexcept = default;
  Json& operator=(const Json&) = default;
  Json& operator=(Json&&) noexcept = default;
  ~Json() {  // needs no stack for nesting, and allocates nothing
    if (elements() != nullptr || members() != nullptr) free_children();
  }
  Json(bool value) noexcept : value_(value) {}                           // NOLINT: implicit on purpose, as the next constructors
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
  // Returns the value as a text of one line, as Python's json.dumps with ensure_ascii=False prints it: with ", " and ": " as separators. A
  // value that is nested more than 1000 deep is printed as null.
  [[nodiscard]] std::string dump() const;

  [[nodiscard]] Type type() const noexcept;
  [[nodiscard]] bool is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] const bool* boolean() const noexcept { return std::get_if<bool>(&value_); }
  // Return the value of a number. A number has one of three forms (64-bit integer, double, text); the function of its form returns a
  // pointer to it, and the other two return nullptr. If this value is no number, all three return nullptr.
  [[nodiscard]] const std::int64_t* integer() const noexcept { return std::get_if<std::int64_t>(&value_); }
  [[nodiscard]] const double* number() const noexcept { return std::get_if<double>(&value_); }
  [[nodiscard]] const WrittenNumber* written_number() const noexcept { return std::get_if<WrittenNumber>(&value_); }
  [[nodiscard]] const std::string* string() const noexcept { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const Array* elements() const noexcept { return std::get_if<Array>(&value_); }
  [[nodiscard]] const Object* members() const noexcept { return std::get_if<Object>(&value_); }
  [[nodiscard]] Array* elements() noexcept { return std::get_if<Array>(&value_); }
  [[nodiscard]] Object* members() noexcept { return std::get_if<Object>(&value_); }

  // Returns the value of a key; nullptr if this is no object or does not have the key.
  [[nodiscard]] const Json* find(std::string_view key) const noexcept;
  // Sets the value of a key and returns the new value. A new key comes after the old ones; an old key keeps its place. If this value is no
  // object, it becomes an empty object first.
  Json& set(std::string_view key, Json value);

  bool operator==(const Json&) const = default;

 private:
  void free_children() noexcept;

  std::variant<std::monostate, bool, std::int64_t, double, WrittenNumber, std::string, Array, Object> value_;
};

}  // namespace tessera
