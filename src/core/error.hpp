// Makes errors with fmt. If formatting runs out of memory, the result is out_of_memory_error().
#pragma once

#include <fmt/format.h>

#include "core/guard.hpp"

namespace tessera::detail {

template <class... Args>
Error error_at(ErrorCode code, std::string_view place, fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    return {code, fmt::format(format, std::forward<Args>(args)...), place};
  } catch (...) {
    return out_of_memory_error();
  }
}

template <class... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) noexcept {
  return error_at(code, {}, format, std::forward<Args>(args)...);
}

// Returns the error for a call that needs the keys and values of a suspended session, which are in a file.
inline Error suspended_error() noexcept {
  return make_error(ErrorCode::invalid_state, "the session is suspended: resume() it first");
}

// Returns the error for an operation that a compute device (a GPU) or its memory has failed to do. `what`: the operation.
inline Error device_error(const char* what) noexcept {
  return make_error(ErrorCode::device_error,
                    "the device failed at {}; if it goes on failing, end what uses it and load the model again", what);
}

}  // namespace tessera::detail
