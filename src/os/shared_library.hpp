// Libraries that are opened at run time.
#pragma once

#include <string>

namespace tessera::os {

// Opens a shared library by its name or path in UTF-8, for as long as the process lives. Returns nullptr if that fails, and in `why`
// the system's words.
[[nodiscard]] void* open_library(const std::string& path, std::string& why);

// Returns the address of a function of the library; nullptr: there is none of that name.
[[nodiscard]] void* find_function(void* library, const char* name) noexcept;

}  // namespace tessera::os
