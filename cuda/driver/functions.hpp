// Finds functions of a shared library at run time.
#pragma once

#include <span>
#include <string>

#include <tessera/core/result.hpp>

namespace tessera::cuda {

struct Function {
  const char* name;
  void** at;  // a pointer to a function, to be filled
};

// Opens the first library of the list `paths` that exists, and returns its handle. The library is never closed, because drivers have
// threads and exit handlers that need its code. Error: not_found if no library of the list can be opened; its message is the sentence
// `absent`, followed by the loader's message.
Result<void*> open_library(std::span<const std::string> paths, const char* absent);

// Sets the pointers of all functions. Error: unsupported, which names the first function that the library does not have.
Status find_functions(void* library, std::span<const Function> functions, const char* what);

}  // namespace tessera::cuda
