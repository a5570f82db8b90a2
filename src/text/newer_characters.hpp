// Characters that are newer than the system's PCRE2. Debian 12 has one of Unicode 14, for which a newer emoji is no symbol and a newer
// letter no letter: it would split a text elsewhere than the library with which the tokenizer was made.
#pragma once

#include <string>
#include <string_view>

namespace tessera::detail {

// Returns a text for PCRE2 to match instead of `text`: each character that Unicode has added after version 14 is replaced by an older one of the
// same class (letter, mark, symbol, ...) with the same number of bytes. So matches have the same offsets in both. Returns `text` itself if
// it has no newer characters; else a view of `copy`, which it overwrites. Precondition: `text` is valid UTF-8.
[[nodiscard]] std::string_view with_older_characters(std::string_view text, std::string& copy);

}  // namespace tessera::detail
