// Weights come from memory while others are multiplied: each step of a multiplication asks for some lines of what is to
// be read next.
#pragma once

#include <cstddef>

#include <immintrin.h>

namespace tessera::cpu::TESSERA_ISA {

class Prefetch {
 public:
  Prefetch() = default;
  // `bytes` from `at` on, in `steps` steps.
  Prefetch(const std::byte* at, std::size_t bytes, std::size_t steps) noexcept
      : at_(at), end_(at + bytes), bytes_a_step_((bytes / steps + 64) / 64 * 64) {}

  [[gnu::always_inline]] void step() noexcept {
    const std::byte* until = at_ + bytes_a_step_;
    for (; at_ < until && at_ < end_; at_ += 64) _mm_prefetch(reinterpret_cast<const char*>(at_), _MM_HINT_T1);
  }

 private:
  const std::byte *at_ = nullptr, *end_ = nullptr;
  std::size_t bytes_a_step_ = 0;
};

}  // namespace tessera::cpu::TESSERA_ISA
