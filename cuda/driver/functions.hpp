// Functions of a shared library that is looked for when the program runs.
#pragma once

#include <span>
#include <string>

#include <tessera/core/result.hpp>

namespace tessera::cuda {

struct Function {
  const char* name;
  void** at;  // a pointer to a function, to be filled
};

// Opens the first of the libraries that is there, for ever: drivers keep threads and exit handlers of their own, which
// must not lose their code. The handle, or not_found with the sentence `absent` and what the loader said.
Result<void*> open_library(std::span<const std::string> paths, const char* absent);

// Fills them all, or is unsupported and names the first that is missing.
Status find_functions(void* library, std::span<const Function> functions, const char* what);

}  // namespace tessera::cuda
