// The one place where exceptions become errors. Public functions run their bodies inside guard(): what the standard
// library throws (bad_alloc, length_error, system_error) and what a caller's callback throws comes back as a Result.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::detail {

// Needs no memory: Error has this message ready for when there is none.
inline Error out_of_memory_error() noexcept { return {ErrorCode::out_of_memory, "out of memory"}; }

// The exception being handled, as an error. Call inside a catch block.
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

// Propagate an error. TRY(auto x, expression) binds the value; TRY_STATUS(expression) drops it.
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
