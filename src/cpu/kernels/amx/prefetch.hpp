// Prefetches the weights that a product with AMX reads next, while other weights are multiplied: some cache lines in each step of a
// multiplication.
#pragma once

#include <cstddef>

namespace tessera::cpu::TESSERA_ISA {

class Prefetch {
 public:
  Prefetch() = default;
  // Prepares to prefetch the `bytes` bytes at `at`, spread over `steps` calls of step(). Each call prefetches whole cache lines, so
  // together they may prefetch some bytes more.
  Prefetch(const std::byte* at, std::size_t bytes, std::size_t steps) noexcept
      : at_(at), end_(at + bytes), bytes_a_step_((bytes + 64 * steps - 1) / (64 * steps) * 64) {}

  // Prefetches the share of one step. kLocality 2 prefetches into L2, 3 into L1.
  template <int kLocality = 2>
  [[gnu::always_inline]] void step() noexcept {
    if (at_ >= end_) return;
    for (std::size_t i = 0; i < bytes_a_step_; i += 64) __builtin_prefetch(at_ + i, 0, kLocality);
    at_ += bytes_a_step_;
  }

 private:
  const std::byte *at_ = nullptr, *end_ = nullptr;
  std::size_t bytes_a_step_ = 0;
};

}  // namespace tessera::cpu::TESSERA_ISA
