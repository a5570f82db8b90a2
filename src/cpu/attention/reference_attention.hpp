// Attention of one row and one KV head's group of query heads, straight from the KV pages. No score matrix: keys are
// taken in chunks of 256 at fixed absolute positions, each with its own exact maximum, and the chunks' partial results
// are merged left to right (online softmax; Milakov and Gimelshein 2018, Dao et al. 2022). So the result depends on the
// row's own sequence alone, not on what else is in the step or how the prompt was cut.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/extend/kv/kv_view.hpp>

#include "backend/backend.hpp"
#include "cpu/attention/attention_job.hpp"

namespace tessera::cpu {

// Scratch of one task for `group` query heads: K and V of a group as f32; for each head the weights of a chunk, a
// partial result, and a maximum and a sum of the chunk and of all.
[[nodiscard]] constexpr std::size_t reference_attention_floats(std::size_t group, std::size_t key_dim,
                                                             std::size_t value_dim) noexcept {
  return kKeyGroup * (key_dim + value_dim) + group * (kChunk + value_dim + 4);
}

// Where a row that votes leaves its scores, in powers of two, of the keys that it sees  [group][stride].
struct ScoresOf {
  float* at = nullptr;
  std::size_t stride = 0;
};

// q [group, key_dim] -> out [group, value_dim] for the query heads of `kv_head`, at `position`.
void attend_reference(const KvView& kv, const backend::AttentionShape& shape, std::size_t kv_head, std::uint64_t position,
            const float* q, float* out, float* scratch, const ScoresOf& scores = {}) noexcept;

}  // namespace tessera::cpu
