#include "cuda/driver/functions.hpp"

#include "core/error.hpp"
#include "os/shared_library.hpp"

namespace tessera::cuda {

Result<void*> open_library(std::span<const std::string> paths, const char* absent) {
  std::string said;
  for (const std::string& path : paths) {
    std::string why;
    if (void* const library = os::open_library(path, why); library != nullptr) return library;
    if (!said.empty()) said.append("; ");
    said.append(why);
  }
  return detail::make_error(ErrorCode::not_found, "{} ({})", absent, said);
}

Status find_functions(void* library, std::span<const Function> functions, const char* what) {
  for (const Function& function : functions) {
    *function.at = os::find_function(library, function.name);
    if (*function.at == nullptr) {
      return detail::make_error(ErrorCode::unsupported, "{} is too old, or something else: it has no {}", what,
                                function.name);
    }
  }
  return {};
}

}  // namespace tessera::cuda
