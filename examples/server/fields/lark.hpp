// Turns Lark grammars, which OpenAI's custom tools use, into regular expressions. Rules must not refer to themselves.
#pragma once

#include <string>
#include <string_view>

namespace server {

// Returns a regular expression (ECMA-262, not anchored) that matches the texts of the grammar's rule `start`. Throws ApiError of status 400
// that names `field` if a line cannot be read, if a rule refers to itself, if there is an %ignore, or if the expression has more than 256
// KiB.
[[nodiscard]] std::string pattern_of_lark(std::string_view grammar, const std::string& field);

}  // namespace server
