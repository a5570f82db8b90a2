// Turns Lark grammars, which OpenAI's custom tools use, into regular expressions. Rules must not refer to themselves.
#pragma once

#include <string>
#include <string_view>

namespace server {

// Returns a pattern (ECMA-262, not anchored) for the texts of the grammar's rule `start`. Throws ApiError of status 400 at `field`: a
// line that cannot be read; a rule that refers to itself; %ignore; a pattern of more than 256 KiB.
[[nodiscard]] std::string pattern_of_lark(std::string_view grammar, const std::string& field);

}  // namespace server
