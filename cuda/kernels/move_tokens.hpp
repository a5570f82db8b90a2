// move_tokens_<codec>: moves the keys and values of tokens of one sequence to lower positions, as src/cpu/attention/move_tokens.cpp does.
// Grid: (the largest number of KV heads of a layer, 2 for keys and values, layers). One launch moves all layers of a KV type, so they are
// moved together or not at all.
#pragma once

#include <cstdint>

#include "cuda/kernels/heads.hpp"
#include "cuda/kernels/kv.hpp"

namespace tessera::cuda {

inline constexpr std::uint32_t kMoveThreads = 256;

struct MoveTokensArgs {
  const KvLayer* layers;            // the layers that have keys and values of their own
  const RopeTurns* turns;           // [layers]: the rotation back, a table [pairs][cosine, sine]; no pairs: keys keep their bits
  const std::uint64_t* pages;       // addresses of the sequence's pages, one group of layers after another
  const std::uint32_t* first_page;  // [layers]: index in `pages` of the first page of the layer's group
  const std::uint64_t* skipped;     // [layers]: how many of the first tokens stay in place
  std::uint64_t from, to, count;  // tokens [from, from + count) to [to, to + count), to < from
};

// Returns the floats of the buffer that a warp needs for one token.
[[nodiscard]] constexpr std::uint32_t move_held_floats(const KvLayer& layer) noexcept {
  const std::uint32_t dim = layer.key_dim > layer.value_dim ? layer.key_dim : layer.value_dim;
  return (dim + 31) / 32 * 32;  // whole runs, for codecs that encode runs
}
[[nodiscard]] constexpr std::uint32_t move_shared_bytes(const KvLayer& layer) noexcept {
  return kMoveThreads / 32 * move_held_floats(layer) * static_cast<std::uint32_t>(sizeof(float));
}

}  // namespace tessera::cuda
