// Sets the default floating-point state. The destructor restores the host's state. The host's state may differ: a fast-math start-up file
// may have set flush-to-zero, or another library the rounding mode. Results must not depend on the host's state, so every task sets the
// default state.
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
