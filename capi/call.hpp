// call() runs the body of a function of the C ABI, and turns every exception of the body into a code and an error
// object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/core/result.hpp>

#include "handle.hpp"

namespace tessera::c {

// Carries an error to call(), as an exception.
struct Failure {
  Error error;
};

[[noreturn]] void fail(ErrorCode code, std::string_view message, std::string_view place = {});
[[noreturn]] inline void fail(const Error& error) { throw Failure{error}; }

// Return the value of a Result, or throw its error.
template <class T>
T must(Result<T> result) {
  if (!result) fail(result.error());
  return std::move(*result);
}
inline void must(Status status) {
  if (!status) fail(status.error());
}

// Reports the exception that is being handled: returns its code, and makes *error unless `error` is NULL.
std::int32_t report_current_exception(tessera_error** error) noexcept;

// Runs the body of a function, and returns its code. The body may throw a Failure or any exception of the standard
// library.
template <class Body>
std::int32_t call(tessera_error** error, Body&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    std::forward<Body>(body)();
    return TESSERA_OK;
  } catch (...) {
    return report_current_exception(error);
  }
}

[[noreturn]] void fail_handle(Kind wanted, const void* handle, Kind found, std::string_view parameter);

// Returns the handle of a parameter. Error: invalid_argument, the handle is NULL or of another kind.
template <class T>
T& need(T* handle, std::string_view parameter) {
  if (handle == nullptr) fail_handle(std::remove_const_t<T>::kKind, handle, Kind::freed, parameter);
  if (const Kind found = handle->kind; found != std::remove_const_t<T>::kKind) {
    fail_handle(std::remove_const_t<T>::kKind, handle, found, parameter);
  }
  return *handle;
}
// Returns the handle of a parameter that may be NULL; nullptr for NULL.
template <class T>
T* need_or_null(T* handle, std::string_view parameter) {
  return handle == nullptr ? nullptr : &need(handle, parameter);
}

// Sets an out parameter to 0 and returns it. Error: invalid_argument, the parameter is NULL.
template <class T>
T& out(T* parameter, std::string_view name) {
  if (parameter == nullptr)
    fail(ErrorCode::invalid_argument, "a place for the result is needed, and NULL was passed", name);
  *parameter = T{};
  return *parameter;
}
// Sets an out parameter, which may be NULL, to 0. Every call begins by setting its out parameters.
template <class T>
void clear(T* parameter) noexcept {
  if (parameter != nullptr) *parameter = T{};
}

// Returns the text or list that a caller passed. Error: invalid_argument, `data` is NULL and `size` above 0.
template <class T>
std::span<const T> list(const T* data, std::size_t size, std::string_view name) {
  if (data == nullptr && size != 0) {
    fail(ErrorCode::invalid_argument, "NULL was passed with a size of " + std::to_string(size) + "; pass 0 for nothing",
         name);
  }
  if (size > PTRDIFF_MAX / sizeof(T)) {
    fail(ErrorCode::invalid_argument,
         "a size of " + std::to_string(size) + " is more than memory can hold; was a negative number passed?", name);
  }
  return {data, size};
}
inline std::string_view text(const char* data, std::size_t size, std::string_view name) {
  const auto bytes = list(data, size, name);
  return {bytes.data(), bytes.size()};
}

// Return a new handle that holds a text or tokens.
[[nodiscard]] tessera_text* new_text(std::string text);
[[nodiscard]] tessera_tokens* new_tokens(std::span<const std::int32_t> tokens);

}  // namespace tessera::c
