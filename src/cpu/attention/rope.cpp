#include "cpu/attention/rope.hpp"

#include "backend/rope_table.hpp"

namespace tessera::cpu {

void rope_factors(const backend::RopeTable& rope, std::uint64_t position, float* factors) noexcept {
  const std::size_t n_pairs = rope.frequencies.size();
  const bool interleaved = rope.pairs == RopePairs::interleaved;
  const std::size_t step = interleaved ? 2 : 1, partner = interleaved ? 1 : n_pairs;  // as in rope()
  float *own = factors, *partners = factors + 2 * n_pairs;
  for (std::size_t i = 0; i < n_pairs; ++i) {
    const auto [cosine, sine] = backend::rope_angle(rope.frequencies[i], position, rope.magnitude);
    const std::size_t a = i * step, b = a + partner;
    own[a] = own[b] = cosine;
    partners[a] = -sine;
    partners[b] = sine;
  }
}

void rope(const float* table, std::size_t n_pairs, bool interleaved, float* head) noexcept {
  const std::size_t step = interleaved ? 2 : 1;           // distance from pair to pair, in elements
  const std::size_t partner = interleaved ? 1 : n_pairs;  // distance from a pair's first element to its second, in elements
  for (std::size_t i = 0; i < n_pairs; ++i) {
    const float cosine = table[2 * i];
    const float sine = table[2 * i + 1];
    float& a = head[i * step];
    float& b = head[i * step + partner];
    const float rotated = a * cosine - b * sine;
    b = a * sine + b * cosine;
    a = rotated;
  }
}

}  // namespace tessera::cpu
