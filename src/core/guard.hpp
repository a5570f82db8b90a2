// guard() runs a function and returns its exceptions as errors. Every public function runs its body inside guard(), so that no exception
// leaves the library: neither those of the standard library (bad_alloc, length_error, system_error) nor those of a caller's callback.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::detail {

// Returns the error for a failed allocation. It needs no memory itself: without memory for the message, Error uses a message that is stored
// in advance.
inline Error out_of_memory_error() noexcept { return {ErrorCode::out_of_memory, "out of memory"}; }

// Returns the exception that is being handled as an error. Call it inside a catch block. bad_alloc and length_error become out_of_memory,
// CallbackFailed becomes callback_failed; all other exceptions get `code`.
Error current_exception_error(ErrorCode code) noexcept;

template <class Fn>
auto guard(Fn&& fn, ErrorCode code = ErrorCode::internal) noexcept -> std::invoke_result_t<Fn> {
  try {
    return std::forward<Fn>(fn)();
  } catch (...) {
    return current_exception_error(code);
  }
}

}  // namespace tessera::detail

// Evaluate an expression that returns a Result. If it failed, the enclosing function returns its error. Otherwise TESSERA_TRY(auto x,
// expression) sets x to the value, and TESSERA_TRY_STATUS(expression) ignores the value.
#define TESSERA_CONCAT_(a, b) a##b
#define TESSERA_CONCAT(a, b) TESSERA_CONCAT_(a, b)
#define TESSERA_TRY_(result, declaration, expression)          \
  auto result = (expression);                                  \
  if (!result) return std::move(result).error();               \
  declaration = *std::move(result)
#define TESSERA_TRY(declaration, expression) TESSERA_TRY_(TESSERA_CONCAT(try_result_, __LINE__), declaration, expression)
#define TESSERA_TRY_STATUS(expression)                                             \
  do {                                                                             \
    if (auto try_status = (expression); !try_status) return std::move(try_status).error(); \
  } while (false)
