// Waits for another thread: polls at first, because waking a thread that sleeps takes long.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tessera::detail {

// How long a thread polls before it parks (sleeps in the kernel). Waking a parked thread takes 5 to 50 microseconds. The time is longer
// than the gap between two operations of a step, and than the gap between two tokens (sampling), so that threads do not park there.
inline constexpr std::chrono::microseconds kSpinTime{100};

inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `value` differs from `old`: polls for kSpinTime, then parks. The thread that changes `value` must notify it.
inline void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  constexpr int kLooks = 16;  // looks between two readings of the clock: a pause takes 10 to 60 ns, the clock 25 ns
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  value.wait(old, std::memory_order_acquire);
}

}  // namespace tessera::detail
