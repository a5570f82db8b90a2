// Values that models write outside of JSON: Python's literals, and Gemma's with strings between <|"|>.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/json/json.hpp>

namespace tessera::output {

// Returns whether JSON has every number of a value: 1e999, for example, is read as infinite.
[[nodiscard]] bool is_finite(const Json& value);

// Reads "{a:1, 'b': [True, <|"|>x<|"|>]}". nullopt: the text is no value, or something follows the value.
[[nodiscard]] std::optional<Json> loose_value(std::string_view text);

// Reads "{'b': [True, None]}", as Python prints it.
[[nodiscard]] std::optional<Json> python_value(std::string_view text);

// Reads "name(a=1, b='x')": returns the name and the arguments.
[[nodiscard]] std::optional<std::pair<std::string, Json>> python_call(std::string_view text);

// Finds the end of a call that comes in pieces: "name(...)" or "name{...}". Brackets in strings do not count.
class LooseExtent {
 public:
  struct End {
    std::size_t size = 0;  // bytes up to the end
    bool broken = false;   // no call begins like this: a bracket of another kind, or a marker outside of strings
  };
  // Returns the end. The text must be that of the call before, or longer. nullopt: the call is not complete.
  std::optional<End> find(std::string_view text);

 private:
  std::size_t at_ = 0;
  std::string open_;       // brackets that close the open ones
  char quote_ = 0;         // quote of the string in hand; '<': a string between <|"|>
  char before_ = 0;        // last byte outside of strings that is no white space
};

}  // namespace tessera::output
