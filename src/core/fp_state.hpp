// While an FpState exists, its thread computes in the default floating-point state (round to nearest, denormals kept). The destructor
// restores the state that was set before. Purpose: the results of the library must not depend on the host's state, which may differ, for
// example because a fast-math start-up file has set flush-to-zero, or another library the rounding mode. So every task makes an FpState.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tessera::detail {

class FpState {
 public:
#if defined(__x86_64__)
  FpState() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~FpState() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  FpState() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~FpState() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#endif
  FpState(const FpState&) = delete;
  FpState& operator=(const FpState&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kDefault = 0x1f80;  // all exceptions masked, round to nearest, denormals kept
  unsigned saved_;
#elif defined(__aarch64__)
  std::uint64_t saved_ = 0;
#endif
};

}  // namespace tessera::detail
