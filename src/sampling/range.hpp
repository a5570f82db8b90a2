// Checks options. Every range excludes NaN.
#pragma once

#include <limits>

#include "core/error.hpp"

namespace tessera::sampling::detail {

inline bool finite(float value) noexcept {
  return value >= std::numeric_limits<float>::lowest() && value <= std::numeric_limits<float>::max();
}

inline Status require(bool holds, const char* option, float value, const char* wanted) noexcept {
  if (holds) return {};
  return tessera::detail::make_error(ErrorCode::invalid_argument, "{} is {}: it must be {}", option, value, wanted);
}

}  // namespace tessera::sampling::detail
