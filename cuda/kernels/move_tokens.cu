#include "cuda/kernels/move_tokens.hpp"

#include "cuda/kernels/device.hpp"
#include "cuda/kernels/head_steps.hpp"
#include "cuda/kernels/kv_access.hpp"

namespace tessera::cuda {

namespace {

// Returns the warp's buffer in shared memory for the token that it moves.
TESSERA_DEVICE float* warp_buffer(const KvLayer& layer) {
  return static_cast<float*>(dynamic_shared()) + warp_id() * move_held_floats(layer);
}

// Moves tokens in ascending order, a batch at a time; each warp of the block has one token of the batch. All tokens of a batch are read
// before one is written. Tokens move only to lower positions, so a place that a batch overwrites was read already (in this batch or an
// earlier one), or its content is not needed.
template <class Codec, kv::KeyOrValue part, class Read, class Write>
TESSERA_DEVICE void move(const MoveTokensArgs& args, const KvLayer& layer, Read read, Write write) {
  const std::uint64_t* pages = args.pages + args.first_page[blockIdx.z];
  for (std::uint64_t batch = args.skipped[blockIdx.z]; batch < args.count; batch += kMoveThreads / kWarp) {
    const std::uint64_t token = batch + warp_id();
    if (token < args.count) read(KvToken<Codec, part>(pages, layer, blockIdx.x, args.from + token));
    sync_block();
    if (token < args.count) write(KvToken<Codec, part>(pages, layer, blockIdx.x, args.to + token));
    sync_block();
  }
}

template <class Codec, kv::KeyOrValue part>
TESSERA_DEVICE void move_bits(const MoveTokensArgs& args, const KvLayer& layer) {
  using Element = typename Codec::Element;
  const auto dim = static_cast<std::uint32_t>(kv::held_elements<Codec>(kv_dim(layer, part)));  // elements
  auto* held = reinterpret_cast<Element*>(warp_buffer(layer));
  float scale = 1.0f;
  move<Codec, part>(
      args, layer,
      [&](const KvToken<Codec, part>& token) {
        for (std::uint32_t d = lane_id(); d < dim; d += kWarp) held[d] = token.load(d);
        scale = token.scale();
      },
      [&](const KvToken<Codec, part>& token) {
        for (std::uint32_t d = lane_id(); d < dim; d += kWarp) token.store(d, held[d]);
        if (lane_id() == 0) {
          token.store_pad();
          token.store_scale(scale);
        }
      });
}

template <class Codec>
TESSERA_DEVICE void turn_keys(const MoveTokensArgs& args, const KvLayer& layer, const RopeTurns& turns) {
  const std::uint32_t dim = layer.key_dim;
  float* held = warp_buffer(layer);
  move<Codec, kv::KeyOrValue::key>(
      args, layer,
      [&](const KvToken<Codec, kv::KeyOrValue::key>& token) {
        const float scale = token.scale();
        for (std::uint32_t d = lane_id(); d < dim; d += kWarp) held[d] = token.number(d, scale);
        sync_warp();
        if constexpr (Codec::rotates) warp_rotate(held, dim, kv::Turn::out);
        warp_rope(turns.table, turns.pairs, turns.kind, held);
      },
      [&](const KvToken<Codec, kv::KeyOrValue::key>& token) { warp_encode(token, held, dim); });
}

template <class Codec>
TESSERA_DEVICE void move_tokens(const MoveTokensArgs& args) {
  const KvLayer layer = args.layers[blockIdx.z];
  const RopeTurns turns = args.turns[blockIdx.z];
  if (blockIdx.x >= layer.kv_heads || (blockIdx.y != 0 && layer.values_in_keys != 0)) return;
  if (blockIdx.y != 0) move_bits<typename CodecsOf<Codec>::Value, kv::KeyOrValue::value>(args, layer);
  else if (turns.pairs == 0) move_bits<typename CodecsOf<Codec>::Key, kv::KeyOrValue::key>(args, layer);
  else turn_keys<typename CodecsOf<Codec>::Key>(args, layer, turns);
}

}  // namespace

TESSERA_KERNEL(move_tokens_f32, kMoveThreads, MoveTokensArgs) { move_tokens<kv::F32>(args); }
TESSERA_KERNEL(move_tokens_f16, kMoveThreads, MoveTokensArgs) { move_tokens<kv::F16>(args); }
TESSERA_KERNEL(move_tokens_bf16, kMoveThreads, MoveTokensArgs) { move_tokens<kv::BF16>(args); }
TESSERA_KERNEL(move_tokens_int8, kMoveThreads, MoveTokensArgs) { move_tokens<kv::Int8>(args); }
TESSERA_KERNEL(move_tokens_int4, kMoveThreads, MoveTokensArgs) { move_tokens<kv::Int4>(args); }
TESSERA_KERNEL(move_tokens_k8v4, kMoveThreads, MoveTokensArgs) { move_tokens<K8V4>(args); }
TESSERA_KERNEL(move_tokens_fp8, kMoveThreads, MoveTokensArgs) { move_tokens<kv::Fp8>(args); }

}  // namespace tessera::cuda
