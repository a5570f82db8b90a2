// The attention of numerics "reference", with which the kernels are compared: plain code for one row and one KV head's query group,
// straight from the KV pages, without a matrix of all scores. Keys are taken in chunks of 256 at fixed absolute positions, each chunk
// with its own exact maximum. The chunks' partial results are merged from left to right (online softmax; Milakov and Gimelshein 2018, Dao
// et al. 2022). So the result depends only on the row's own sequence, not on other rows of the step or on how the prompt was cut into
// steps.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/extend/kv/kv_view.hpp>

#include "backend/backend.hpp"
#include "cpu/attention/attention_job.hpp"

namespace tessera::cpu {

// Returns the number of floats in a task's scratch, for `group` query heads. The scratch has the 32 keys and values of a key group, and
// for each query head: the weights of a chunk, a partial result, and two maxima and two sums (of the chunk, and of all chunks so far).
[[nodiscard]] constexpr std::size_t reference_attention_floats(std::size_t group, std::size_t key_dim,
                                                             std::size_t value_dim) noexcept {
  return kKeyGroup * (key_dim + value_dim) + group * (kChunk + value_dim + 4);
}

// Memory [group][stride] to which attention writes the scores of a voting row, for the keys that the row sees; a null `at`: the row does
// not vote. As in AttendJob::scores, a score s is written as s * kLog2E.
struct ScoresOf {
  float* at = nullptr;
  std::size_t stride = 0;
};

// Computes out [group, value_dim] from q [group, key_dim], for the `group` query heads that share `kv_head`. `position`: the row's
// position. `seen_end`: end of the keys that the row sees.
void attend_reference(const KvView& kv, const backend::AttentionShape& shape, std::size_t kv_head, std::uint64_t position, std::uint64_t seen_end,
            const float* q, float* out, float* scratch, const ScoresOf& scores = {}) noexcept;

}  // namespace tessera::cpu
