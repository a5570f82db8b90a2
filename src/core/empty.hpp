// Return values of functions that are called on an empty handle. A handle is empty when it was default-constructed, when it was moved from,
// and when it is the value of a failed Result (docs/headers.md).
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include "core/error.hpp"

namespace tessera::detail {

// Returns the error of a call on an empty handle of class `name`, or with such a handle as an argument.
inline Error empty_handle(const char* name) noexcept {
  return make_error(ErrorCode::invalid_state,
                    "this {} is empty: it was default-constructed or moved from, or it is the value of a failed Result; test the "
                    "Result, and use the object that was moved to",
                    name);
}

// Returns the error for an empty Tokenizer. The tokenizer of an engine without a vocabulary is empty too.
inline Error no_tokenizer_error() noexcept {
  return make_error(ErrorCode::invalid_state, "there is no tokenizer: the model's file has none (a folder needs its tokenizer.json or tokenizer.model), or it was left out; give token ids");
}

// Returns a reference to a T{}. Functions that return a reference return this object if their handle is empty. The T{} is made at the first
// use, on any thread, and never destroyed.
template <class T>
const T& empty_value() noexcept {
  static_assert(std::is_nothrow_default_constructible_v<T>);
  alignas(T) static std::byte storage[sizeof(T)];
  static const T* const value = new (storage) T();
  return *value;
}

}  // namespace tessera::detail
