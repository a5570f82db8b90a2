// Errors of the library in the words of this program's options. The library advises its callers, who make sessions and load adapters; the
// reader of this program's errors gives options.
#pragma once

#include <string>

// Returns the text of an error, with the library's advice replaced by one that names options. Other texts are unchanged.
[[nodiscard]] std::string in_options(std::string text);
