// Values as models write them outside of JSON: Python's literals, and Gemma's with strings between <|"|>.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/json/json.hpp>

namespace tessera::output {

// Returns whether every number in a value is one that JSON has: 1e999 is read as infinite.
[[nodiscard]] bool is_finite(const Json& value);

// "{a:1, 'b': [True, <|"|>x<|"|>]}"; nullopt: it is none, or something follows it.
[[nodiscard]] std::optional<Json> loose_value(std::string_view text);

// "{'b': [True, None]}" as Python prints it.
[[nodiscard]] std::optional<Json> python_value(std::string_view text);

// "name(a=1, b='x')": the name and its arguments.
[[nodiscard]] std::optional<std::pair<std::string, Json>> python_call(std::string_view text);

// Finds where a call that comes in pieces ends: "name(...)" or "name{...}". Brackets in strings do not count.
class LooseExtent {
 public:
  struct End {
    std::size_t size = 0;  // bytes up to there
    bool broken = false;   // no call begins so: a bracket of another kind, or a marker outside of strings
  };
  // The text is the one of the call before, or longer. nullopt: the call is not all there.
  std::optional<End> find(std::string_view text);

 private:
  std::size_t at_ = 0;
  std::string open_;       // the brackets that close what is open
  char quote_ = 0;         // of the string in hand; '<': one between <|"|>
  char before_ = 0;        // the last byte outside of strings that is no white space
};

}  // namespace tessera::output
