// The operations of a transformer step that are neither a matrix product nor attention, one row at a time. Sums run in
// 16 lanes (element mod 16) that a fixed tree joins.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/backend/backend.hpp>

namespace tessera::cpu {

// out = x / sqrt(mean(x^2) + eps) * weight  (Zhang and Sennrich 2019).
void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out) noexcept;
// out = (x - mean) / sqrt(variance + eps) * weight + bias  (Ba et al. 2016); bias may be nullptr.
void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* out) noexcept;
// Rotates the first 2 * n_pairs elements of a head by the angles in `table`: [n_pairs][cos, sin]  (Su et al. 2021).
void rope(const float* table, std::size_t n_pairs, bool interleaved, float* head) noexcept;
// The table of a position: angles in double, rounded once.
void rope_table(const double* frequencies, std::size_t n_pairs, std::uint64_t position, float* table) noexcept;
void activate(backend::ActivationKind kind, const float* x, std::size_t n, float* out) noexcept;

}  // namespace tessera::cpu
