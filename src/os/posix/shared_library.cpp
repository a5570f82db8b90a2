#include "os/shared_library.hpp"

#include <dlfcn.h>

namespace tessera::os {

void* open_library(const std::string& path, std::string& why) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const words = ::dlerror();
    why = words != nullptr ? words : path;
  }
  return library;
}

void* find_function(void* library, const char* name) noexcept { return ::dlsym(library, name); }

}  // namespace tessera::os
