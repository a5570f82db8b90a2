// Arithmetic on numbers from files, which may be hostile. If a result does not fit 64 bits, the functions return nullopt.
#pragma once

#include <cstdint>
#include <optional>

namespace tessera::detail {

[[nodiscard]] constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

[[nodiscard]] constexpr std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

[[nodiscard]] constexpr std::optional<std::uint64_t> checked_align(std::uint64_t value, std::uint64_t to) noexcept {
  const auto padded = checked_add(value, to - 1);
  if (!padded) return std::nullopt;
  return *padded / to * to;
}

}  // namespace tessera::detail
