// Turns exceptions into errors. Public functions run their bodies inside guard(): exceptions of the standard library (bad_alloc,
// length_error, system_error) and of a caller's callback come back as a Result.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::detail {

// Returns the error for failed allocations. If there is no memory for the message, Error uses a message that is stored in advance.
inline Error out_of_memory_error() noexcept { return {ErrorCode::out_of_memory, "out of memory"}; }

// Returns the exception being handled as an error: bad_alloc and length_error as out_of_memory, CallbackFailed as callback_failed,
// others with `code`. Call it inside a catch block.
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

// Return an error to the caller. TESSERA_TRY(auto x, expression) binds the value; TESSERA_TRY_STATUS(expression) drops it.
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
