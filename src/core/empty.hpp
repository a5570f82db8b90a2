// What functions return when they are called on an empty handle: an error, or a reference to an empty object. A handle is empty if it was
// default-constructed, if it was moved from, or if it is the value of a failed Result (docs/headers.md).
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include "core/error.hpp"

namespace tessera::detail {

// Returns the error for a call on an empty handle, or with one as an argument. `name`: the handle's class.
inline Error empty_handle(const char* name) noexcept {
  return make_error(ErrorCode::invalid_state,
                    "this {} is empty: it was default-constructed or moved from, or it is the value of a failed Result; test the "
                    "Result, and use the object that was moved to",
                    name);
}

// Returns the error for an empty Tokenizer, which an engine without a vocabulary has too.
inline Error no_tokenizer_error() noexcept {
  return make_error(ErrorCode::invalid_state, "there is no tokenizer: the model's file has none (a folder needs its tokenizer.json or tokenizer.model), or it was left out; give token ids");
}

// Returns a reference to a T{}, for functions that return a reference: they return this object if their handle is empty. There is one such
// object for each T. It is made at the first use, on any thread, and never destroyed.
template <class T>
const T& empty_value() noexcept {
  static_assert(std::is_nothrow_default_constructible_v<T>);
  alignas(T) static std::byte storage[sizeof(T)];
  static const T* const value = new (storage) T();
  return *value;
}

}  // namespace tessera::detail
