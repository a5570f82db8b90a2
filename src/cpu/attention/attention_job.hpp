// The arguments of attention kernels. A job is one call of a kernel: attention of some rows over some chunks of keys of one KV head, for
// all query heads that share this KV head (a query group). The rows are at consecutive positions of one sequence, or belong to several
// sequences that share these keys. Constants and plain structs only (kernels.hpp says why).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

inline constexpr std::size_t kChunk = 256;    // keys of a chunk; chunks begin at positions that are multiples of 256
inline constexpr float kLog2E = 0x1.715476p+0f;  // factor of scores, because weights are computed as powers of two
inline constexpr std::size_t kKeyGroup = 32;  // keys of a chunk that are multiplied at once

// The type of keys and values in the pages.
enum class KvType : std::uint8_t { f32, f16, bf16, int8, fp8, int4, k8v4, count };
inline constexpr std::size_t kKvTypes = static_cast<std::size_t>(KvType::count);

// Pointer to a tile of keys or values: for each of 16 lanes, 32 numbers over which a product sums (kernels/attention/operands.hpp).
struct KvTile {
  const std::byte* at;
  std::size_t stride;    // bytes from one row of the tile to the next
  std::ptrdiff_t ahead;  // bytes from a row to the data that kernels prefetch while they read the row; 0: they prefetch nothing
};

struct AttendJob {
  // pages: the pages of the rows' sequence. Page i has the page_tokens positions (16, 32 or 64) from i * page_tokens on. In each page, the
  // keys and values of the job's layer and KV head begin at the offsets k_offset and v_offset (bytes), laid out as in kv/block.hpp. Pages
  // without a visible key are not read.
  std::byte* const* pages = nullptr;
  std::size_t page_tokens = 0, k_offset = 0, v_offset = 0;
  std::size_t key_dim = 0, value_dim = 0;
  bool values_in_keys = false;  // true: values are a part of the keys; v_offset leads to the value's first dimension in the K block
  std::size_t query_group = 0;  // query heads that share the KV head

  std::size_t rows = 0;
  std::uint64_t position = 0;  // position of the first row; the rows have consecutive positions
  std::uint64_t window = 0;    // keys that a row sees, its own included; 0: all keys up to its own
  std::uint64_t ahead = 0;     // number of later keys that a row sees too, but only keys before `end`
  std::uint64_t end = 0;       // position after the last key that `ahead` may reach; used only if `ahead` is not 0
  // 0: the job computes the keys of the rows' windows. Not 0: the job computes only the global keys, which are the keys at positions below
  // `globals` that lie before a row's window. Then other jobs compute the keys of the windows.
  std::uint64_t globals = 0;
  // If row_numbers is nullptr, the rows belong to one sequence and have consecutive positions. Otherwise the rows may belong to several
  // sequences, and every row sees all keys of the job's chunks. Then row i of the job is row row_numbers[i] of q, out and states;
  // `position` is the position of the last key, and `window` is 0.
  const std::uint32_t* row_numbers = nullptr;
  float scale = 1.0f;
  float softcap = 0.0f;          // scaled scores s become softcap * tanh(s / softcap); 0: no softcap
  const float* sinks = nullptr;  // [query_group]: sink logits, which the rows' last job adds to the softmax's sums; or null
  const float* q = nullptr;  // [rows][q_stride], of which the first [query_group][key_dim] are read
  std::size_t q_stride = 0;

  std::uint64_t first_chunk = 0, last_chunk = 0;  // the job's chunks: [first, last)
  float* out = nullptr;  // [rows][out_stride], of which the first [query_group][value_dim] are written
  std::size_t out_stride = 0;
  // If states is nullptr, this job computes all chunks of its rows. Otherwise several jobs compute a row's chunks, one job after another.
  // Between two jobs, `out` has the weighted sum over the chunks so far, and `states` the largest score and the sum of the weights. If
  // the sum is 0, no chunk has been computed yet.
  float* states = nullptr;  // [rows][state_stride], of which the first [query_group][maximum, sum] are used
  std::size_t state_stride = 0;
  bool is_last = true;  // the last job of the rows: divides by the sum
  // If partials is nullptr, the results of chunks are merged into `out`. Otherwise they are left for the caller to merge: `out` and
  // `states` are not written, and each chunk's partial result is written to `partials`, partial_stride floats apart:
  //   [rows][query_group][value_dim of the weighted sum, maximum, sum of the weights]
  // If the sum is 0, the row sees no key of the chunk.
  float* partials = nullptr;
  std::size_t partial_stride = 0;
  // If scores is nullptr, scores are not kept. Otherwise (some rows vote) the kernel also writes the scores of the keys that these rows
  // see in the job's chunks. A score s is written as s * kLog2E, the exponent of 2 from which the key's weight is computed. The score of
  // head j of row i for a key is written to scores[i] + (first_head + j) * score_stride + the key's position. If scores[i] is null, row i
  // does not vote, and none of its scores is written.
  float* const* scores = nullptr;  // [rows]; with row_numbers, indexed by row number
  std::size_t score_stride = 0, first_head = 0;
  std::byte* scratch = nullptr;  // attend_scratch().bytes bytes, aligned to 64
  // The job that the same thread most likely computes next, or null. If a job has few queries, its kernel prefetches the first keys of the
  // next job while it reads its own last keys.
  const AttendJob* next = nullptr;
};

struct Attend {
  void (*run)(const AttendJob& job) noexcept = nullptr;
  const char* name = "";    // for explain()
  std::size_t queries = 0;  // the number of queries (rows * query_group) in a task with which the kernel is fastest (attend_rows())
};

[[nodiscard, gnu::always_inline]] constexpr std::size_t rounded_up(std::size_t n, std::size_t to) noexcept {
  return (n + to - 1) / to * to;
}

[[nodiscard, gnu::always_inline]] constexpr std::size_t partial_floats(std::size_t value_dim) noexcept {
  return value_dim + 2;
}

// Returns how many rows a task should have, if its kernel is fastest with `queries` queries: `queries` / query_group, because each row
// has query_group queries, but at least 1.
[[nodiscard, gnu::always_inline]] constexpr std::size_t attend_rows(std::size_t queries, std::size_t query_group) noexcept {
  return queries > query_group ? queries / query_group : 1;
}

// The layout of a job's scratch: the offset of each array, in bytes.
struct AttendScratch {
  // Tiles of queries and weights have room for 8 bytes for each number: up to two parts (operands.hpp) of up to four bytes. Tiles of keys
  // and values have 4 bytes for each number: two parts of two bytes, or one of four.
  std::size_t q = 0;        // [queries / 16][key_dim / 32] tiles of 16 queries by 32 dimensions
  std::size_t weights = 0;  // [2][8 key groups] tiles of 16 queries by 32 keys: the weights of 16 queries, and of the 16 queries before
  std::size_t scores = 0;   // [queries][256 keys of a chunk] f32
  std::size_t keys = 0;     // [4][key_dim / 32] tiles of 16 keys by 32 dimensions
  std::size_t values = 0;   // [8 key groups][value_dim / 16] tiles of 16 dimensions by 32 keys
  std::size_t scales = 0;   // [2][256] f32: scales of a chunk's keys and values
  std::size_t key_tiles = 0, value_tiles = 0;  // KvTile [key_dim / 32][4 tiles of 16 keys], [value_dim / 64][8 key groups][4]
  std::size_t partial = 0;  // [16][value_dim] f32: a chunk's result
  std::size_t total = 0;    // [queries][value_dim] f32: the weighted sums of all chunks so far
  std::size_t state = 0;    // [queries / 16][maximum, sum][16 queries] f32: maximum and sum over all chunks so far
  std::size_t spans = 0;    // [queries][first, last]: the keys of a chunk that each query sees
  std::size_t bytes = 0;
};

[[nodiscard, gnu::always_inline]] constexpr AttendScratch attend_scratch(std::size_t queries, std::size_t key_dim,
                                                                         std::size_t value_dim) noexcept {
  const std::size_t rows = rounded_up(queries, 16), k = rounded_up(key_dim, 32), v = rounded_up(value_dim, 64);
  AttendScratch at;
  std::size_t end = 0;
  const auto take = [&end](std::size_t bytes) __attribute__((always_inline)) {
    const std::size_t start = end;
    end += rounded_up(bytes, 64);
    return start;
  };
  at.q = take(rows * k * 8);
  at.weights = take(2 * 16 * kChunk * 8);
  at.scores = take(rows * kChunk * 4);
  at.keys = take(64 * k * 4);
  at.values = take(kChunk * v * 4);
  at.scales = take(2 * kChunk * 4);
  at.key_tiles = take(k / 32 * 4 * sizeof(KvTile));
  at.value_tiles = take(v / 16 * 8 * sizeof(KvTile));
  at.partial = take(16 * v * 4);
  at.total = take(rows * v * 4);
  at.state = take(rows * 8);
  at.spans = take(rows * 8);
  at.bytes = end;
  return at;
}

}  // namespace tessera::cpu
