// Errors of the library in the words of C: its sentences name what a C++ program calls, and a C program calls something
// else.
#pragma once

#include <string>
#include <string_view>

namespace tessera::c {

// Returns the message or the place of an error with the names of the C++ API replaced by those of tessera.h.
[[nodiscard]] std::string in_words_of_c(std::string_view text);

}  // namespace tessera::c
