// Opens shared libraries at run time, such as the CUDA driver, so that the library need not be linked with them.
#pragma once

#include <string>

namespace tessera::os {

// Opens a shared library by its name or path in UTF-8. The library stays open until the process ends. If that fails, returns nullptr and
// writes the system's error message to `why`.
[[nodiscard]] void* open_library(const std::string& path, std::string& why);

// Returns the address of a function of the library; nullptr if the library has no function of this name.
[[nodiscard]] void* find_function(void* library, const char* name) noexcept;

}  // namespace tessera::os
