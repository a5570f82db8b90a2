// Whether a sanitizer watches, under which every loop takes many times as long.
#pragma once

namespace tessera::tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Returns how much of something a test does: all, or less where a sanitizer watches.
template <typename T>
constexpr T unless_sanitized(T all, T less) {
  return kSanitized ? less : all;
}

}  // namespace tessera::tests
