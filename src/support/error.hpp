// Makes errors with fmt. Formatting may run out of memory: then the error says that instead.
#pragma once

#include <fmt/format.h>

#include "support/guard.hpp"

namespace tessera::detail {

template <class... Args>
Error error_at(ErrorCode code, std::string place, fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    return {code, fmt::format(format, std::forward<Args>(args)...), std::move(place)};
  } catch (...) {
    return out_of_memory_error();
  }
}

template <class... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) noexcept {
  return error_at(code, {}, format, std::forward<Args>(args)...);
}

}  // namespace tessera::detail
