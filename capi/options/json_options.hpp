// Options as JSON. Each kind of options has one table of its keys. The table serves to read a text, and to check the
// reference (docs/reference/c-options.md). A key that is not in the table is an error, which names the nearest key.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/json/json.hpp>

#include "call.hpp"

namespace tessera::c {

// A value in a caller's JSON, and its place for errors ("sampler.temperature"). The functions fail with
// invalid_argument.
class Value {
 public:
  Value(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  [[nodiscard]] const Json& json() const noexcept { return *json_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[noreturn]] void refuse(std::string_view why) const;

  [[nodiscard]] bool boolean() const;
  [[nodiscard]] double number() const;  // finite
  [[nodiscard]] double number(double least, double most = std::numeric_limits<double>::infinity()) const;
  [[nodiscard]] double positive(double most = std::numeric_limits<double>::infinity()) const;  // above 0
  [[nodiscard]] float real() const { return static_cast<float>(number()); }
  [[nodiscard]] const std::string& string() const;
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most) const;
  // Returns an integer from 0 to 2^64 - 1. Integers above the signed limit are read from the number's text.
  [[nodiscard]] std::uint64_t unsigned_integer() const;
  template <class T>
  [[nodiscard]] T integer(T least = std::numeric_limits<T>::min(), T most = std::numeric_limits<T>::max()) const {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    const auto bounded = static_cast<std::uint64_t>(most) > static_cast<std::uint64_t>(kMost) && most > 0
                             ? kMost
                             : static_cast<std::int64_t>(most);
    return static_cast<T>(integer(static_cast<std::int64_t>(least), bounded));
  }
  // Returns the elements of a list.
  [[nodiscard]] std::vector<Value> elements() const;
  [[nodiscard]] std::vector<std::string> strings() const;     // accepts a text, or a list of texts
  [[nodiscard]] std::vector<std::string> stop_texts() const;  // the same; no text may be empty
  [[nodiscard]] std::vector<std::int32_t> tokens() const;     // accepts a list of token ids, of any vocabulary
  // Returns the index of the text among `names`.
  [[nodiscard]] std::size_t choice(std::span<const std::string_view> names) const;
  // Returns an enumerator: names[i] stands for the enumerator with the number i.
  template <class Enum, std::size_t N>
  [[nodiscard]] Enum one_of(const std::string_view (&names)[N]) const {
    return static_cast<Enum>(choice(names));
  }

 private:
  const Json* json_;
  std::string path_;
};

// A key of an options object. The reference prints `form` (the value's type and range) and `words` (effect and
// default).
template <class Options>
struct Key {
  std::string_view name, form, words;
  void (*read)(Options&, const Value&);
};

[[noreturn]] void fail_unknown_key(const Value& object, std::string_view key, std::span<const std::string_view> known);

template <class Options>
const Key<Options>* find_key(std::span<const Key<Options>> keys, std::string_view name) noexcept {
  for (const Key<Options>& key : keys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

// Reads an object whose keys are in two tables, each with its own struct. A key whose value is null counts as absent.
template <class A, class B>
void read_keys(const Value& object, std::span<const Key<A>> a, A& to_a, std::span<const Key<B>> b, B& to_b) {
  const Json::Object* members = object.json().members();
  if (members == nullptr) object.refuse("must be an object");
  for (const auto& [name, json] : *members) {
    const Key<A>* in_a = find_key(a, name);
    const Key<B>* in_b = in_a != nullptr ? nullptr : find_key(b, name);
    if (in_a == nullptr && in_b == nullptr) {
      std::vector<std::string_view> known;
      for (const Key<A>& key : a) known.push_back(key.name);
      for (const Key<B>& key : b) known.push_back(key.name);
      fail_unknown_key(object, name, known);
    }
    if (json.is_null()) continue;
    const Value value(json, object.path().empty() ? name : object.path() + "." + name);
    if (in_a != nullptr)
      in_a->read(to_a, value);
    else
      in_b->read(to_b, value);
  }
}
// Reads an object whose keys are in one table.
template <class Options>
void read_keys(const Value& object, std::span<const Key<Options>> keys, Options& to) {
  struct Nothing {
  } nothing;
  read_keys<Options, Nothing>(object, keys, to, {}, nothing);
}

// Says how half a surrogate pair ("\\ud83d"), which is not text, is read: as an error, or as U+FFFD. Options refuse it,
// because with U+FFFD two different salts or tenants could become the same text.
enum class HalfPairs { refuse, replace };
// Parses the text that a caller passed; an empty text stands for an empty object. `what` names the parameter in errors.
[[nodiscard]] Json parse_json(const char* json, std::size_t size, std::string_view what,
                              HalfPairs half_pairs = HalfPairs::refuse);

// Reads options from the text that a caller passed, by the table `keys`.
template <class Options>
void read_options(const char* json, std::size_t size, std::string_view what, std::span<const Key<Options>> keys,
                  Options& to) {
  const Json parsed = parse_json(json, size, what);
  read_keys(Value(parsed, {}), keys, to);
}

// A table of keys, for the reference.
struct Table {
  struct Row {
    std::string_view name, form, words;
  };
  std::string_view title;  // "Engine"
  std::vector<Row> rows;
};
template <class Options>
Table table_of(std::string_view title, std::span<const Key<Options>> keys) {
  Table table{title, {}};
  for (const Key<Options>& key : keys) table.rows.push_back({key.name, key.form, key.words});
  return table;
}

}  // namespace tessera::c
