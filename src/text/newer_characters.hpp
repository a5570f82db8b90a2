// Replaces characters that are newer than the system's PCRE2, before PCRE2 splits a text into words. The PCRE2 of Debian 12 knows Unicode
// 14: it does not see that a newer emoji is a symbol, or that a newer letter is a letter. So it would split a text in other places than
// the library with which the model's tokenizer was made.
#pragma once

#include <string>
#include <string_view>

namespace tessera::detail {

// Returns a text for PCRE2 to match instead of `text`: each character that Unicode has added after version 14 is replaced by an older
// character of the same class (letter, mark, symbol, ...) with the same number of bytes. So matches have the same offsets in both texts. If
// `text` has no newer characters, returns `text` itself; otherwise overwrites `copy` and returns a view of `copy`. Precondition: `text` is
// valid UTF-8.
[[nodiscard]] std::string_view with_older_characters(std::string_view text, std::string& copy);

}  // namespace tessera::detail
