#include "cuda/driver/functions.hpp"

#include <dlfcn.h>

#include "core/error.hpp"

namespace tessera::cuda {

Result<void*> open_library(std::span<const std::string> paths, const char* absent) {
  std::string said;
  for (const std::string& path : paths) {
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
    const char* const why = dlerror();
    if (!said.empty()) said.append("; ");
    said.append(why != nullptr ? why : path.c_str());
  }
  return detail::make_error(ErrorCode::not_found, "{} ({})", absent, said);
}

Status find_functions(void* library, std::span<const Function> functions, const char* what) {
  for (const Function& function : functions) {
    *function.at = dlsym(library, function.name);
    if (*function.at == nullptr) {
      return detail::make_error(ErrorCode::unsupported, "{} is too old, or something else: it has no {}", what,
                                function.name);
    }
  }
  return {};
}

}  // namespace tessera::cuda
