// Reads values that models write in other forms than JSON: Python's literals, and Gemma's values with strings between <|"|>.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/json/json.hpp>

namespace tessera::output {

// Returns whether all numbers in the value are finite. (1e999, for example, is read as infinite, which JSON cannot express.)
[[nodiscard]] bool is_finite(const Json& value);

// Reads a value such as "{a:1, 'b': [True, <|"|>x<|"|>]}". nullopt: the text is not a value, or something follows the value.
[[nodiscard]] std::optional<Json> loose_value(std::string_view text);

// Reads a value as Python prints it, such as "{'b': [True, None]}".
[[nodiscard]] std::optional<Json> python_value(std::string_view text);

// Reads a call such as "name(a=1, b='x')". Returns its name and its arguments.
[[nodiscard]] std::optional<std::pair<std::string, Json>> python_call(std::string_view text);

// Finds the end of a tool call that arrives in pieces: "name(...)" or "name{...}". Brackets inside strings do not count.
class LooseExtent {
 public:
  struct End {
    std::size_t size = 0;  // length of the tool call, in bytes
    bool broken = false;   // true: this cannot be a tool call, because of a wrong bracket, or of a marker outside of strings
  };
  // Returns the end of the tool call with which `text` begins; nullopt if the call is not complete yet. The search goes on where the last
  // call of find() stopped, so each call must get the same text, with or without more bytes after it.
  std::optional<End> find(std::string_view text);

 private:
  std::size_t at_ = 0;
  std::string open_;       // the closing brackets that are still to come
  char quote_ = 0;         // the quote of the string that is being read; '<' for a string between <|"|>; 0: none
  char before_ = 0;        // the last byte outside of strings that is not white space
};

}  // namespace tessera::output
