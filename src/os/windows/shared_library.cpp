#include "os/shared_library.hpp"

#include "os/error.hpp"
#include "os/windows/windows.hpp"

namespace tessera::os {

void* open_library(const std::string& path, std::string& why) {
  // If `path` is a path and not only a name, Windows also searches the path's own folder for the libraries that this one needs. A bare name
  // is searched for in Windows' usual places.
  const bool is_path = path.find_first_of("/\\") != std::string::npos;
  const HMODULE library =
      ::LoadLibraryExW(utf16_of(path).c_str(), nullptr, is_path ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS : 0);
  if (library == nullptr) why = path + ": " + words_of(static_cast<int>(::GetLastError()));
  return reinterpret_cast<void*>(library);
}

void* find_function(void* library, const char* name) noexcept {
  return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(library), name));
}

}  // namespace tessera::os
