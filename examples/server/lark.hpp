// Lark's grammars, as OpenAI's custom tools have them, as regular expressions: those whose rules do not refer to themselves.
#pragma once

#include <string>
#include <string_view>

namespace server {

// A pattern (ECMA-262, not anchored) for the texts that `start` of the grammar means. Throws ApiError of status 400 at `field`:
// what cannot be read, with its line; a rule that refers to itself; %ignore; a pattern that grows beyond 256 KiB.
[[nodiscard]] std::string pattern_of_lark(std::string_view grammar, const std::string& field);

}  // namespace server
