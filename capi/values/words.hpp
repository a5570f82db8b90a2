// Translates the library's errors to the words of C. Their sentences name functions and types of C++, which C programs
// call by other names.
#pragma once

#include <string>
#include <string_view>

namespace tessera::c {

// Returns the message or the place of an error, with the names of the C++ API replaced by those of tessera.h.
[[nodiscard]] std::string in_words_of_c(std::string_view text);

}  // namespace tessera::c
