// Rewrites errors of the library for the users of this program. The library's errors advise programmers, who make sessions and load
// adapters; the users of this program can only set its options.
#pragma once

#include <string>

// Returns the text of an error, with the library's advice replaced by one that names options. Other texts are unchanged.
[[nodiscard]] std::string in_options(std::string text);
