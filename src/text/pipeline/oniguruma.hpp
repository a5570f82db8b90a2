// Translates patterns of a tokenizer.json. These are written for Oniguruma in its Ruby syntax, and tessera matches with PCRE2.
#pragma once

#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

namespace tessera::detail {

// Returns a pattern in PCRE2's syntax that has the same matches as `pattern` has in Oniguruma's. These are translated because the two
// libraries differ in them: sets inside of sets ("[a[^b]]") and their intersections ("[\w&&[^\d]]"), the meaning of \s, \w, \d, \h and
// \p{Han}, "{1,3}+" (a repetition of a repetition), "{,3}", "(?m:...)". Errors: unsupported, with the offset in the pattern, for a
// construct that is not translated.
[[nodiscard]] Result<std::string> pcre2_pattern(std::string_view pattern);

}  // namespace tessera::detail
