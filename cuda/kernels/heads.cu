#include "cuda/kernels/heads.hpp"

#include "cuda/kernels/device.hpp"
#include "cuda/kernels/head_steps.hpp"
#include "cuda/kernels/kv_access.hpp"

namespace tessera::cuda {

namespace {

// The row and the head that a warp computes.
struct HeadTask {
  std::uint32_t row, head;
};
TESSERA_DEVICE HeadTask head_task(std::uint32_t heads) {
  const std::uint64_t task = std::uint64_t{blockIdx.x} * (kHeadThreads / kWarp) + warp_id();
  return {static_cast<std::uint32_t>(task / heads), static_cast<std::uint32_t>(task % heads)};
}

template <class T>
TESSERA_DEVICE T* head_of(T* x, HeadTask task, std::uint32_t heads, std::uint32_t dim) {
  return x + (std::uint64_t{task.row} * heads + task.head) * dim;
}

TESSERA_DEVICE void turn(const RopeTurns& turns, std::uint32_t row, float* head) {
  warp_rope(turns.table + std::uint64_t{row} * 2 * turns.pairs, turns.pairs, turns.kind, head);
}

template <class Codec, kv::KeyOrValue part>
TESSERA_DEVICE void append(const KvLayer& layer, const KvTables& tables, HeadTask task, const float* values) {
  const std::uint32_t sequence = tables.row_sequence[task.row];
  if (sequence == kNoSequence) return;  // true for all lanes of the warp, which have one row
  const std::uint64_t* pages = tables.pages + tables.first_page[sequence];
  const KvToken<PartCodec<Codec, part>, part> token(pages, layer, task.head, tables.row_position[task.row]);
  warp_encode(token, values, kv_dim(layer, part));
}

template <class Codec>
TESSERA_DEVICE void append_value(const KvLayer& layer, const KvTables& tables, HeadTask task, const float* v) {
  append<Codec, kv::KeyOrValue::value>(layer, tables, task, head_of(v, task, layer.kv_heads, layer.value_dim));
}

template <class Codec>
TESSERA_DEVICE void append_kv(const AppendKvArgs& args) {
  const KvLayer& layer = args.layer;
  HeadTask task = head_task(2 * layer.kv_heads);
  if (task.row >= args.rows) return;
  const bool is_key = task.head < layer.kv_heads;
  if (!is_key) task.head -= layer.kv_heads;
  const HeadTask source{args.source_rows != nullptr ? args.source_rows[task.row] : task.row, task.head};
  if (is_key) {
    append<Codec, kv::KeyOrValue::key>(layer, args.tables, task, head_of(args.k, source, layer.kv_heads, layer.key_dim));
  } else {
    append<Codec, kv::KeyOrValue::value>(layer, args.tables, task, head_of(args.v, source, layer.kv_heads, layer.value_dim));
  }
}

template <class Codec>
TESSERA_DEVICE void rope_append(const RopeAppendArgs& args) {
  const KvLayer& layer = args.layer;
  HeadTask task = head_task(args.heads + 2 * layer.kv_heads);
  if (task.row >= args.rows) return;
  const auto norm_and_turn = [&](float* head, const float* weight) {
    if (weight != nullptr) warp_head_norm(weight, args.eps, layer.key_dim, head);
    sync_warp();
    turn(args.turns, task.row, head);
    sync_warp();
  };
  if (task.head < args.heads) {
    norm_and_turn(head_of(args.q, task, args.heads, layer.key_dim), args.q_norm);
    return;
  }
  task.head -= args.heads;
  if (task.head < layer.kv_heads) {
    float* key = head_of(args.k, task, layer.kv_heads, layer.key_dim);
    norm_and_turn(key, args.k_norm);
    append<Codec, kv::KeyOrValue::key>(layer, args.tables, task, key);
  } else {
    task.head -= layer.kv_heads;
    append_value<Codec>(layer, args.tables, task, args.v);
  }
}

template <class Codec>
TESSERA_DEVICE void latent_append(const LatentAppendArgs& args) {
  const HeadTask task = head_task(args.heads + 1);
  if (task.row >= args.rows) return;
  if (task.head < args.heads) {
    float* turned = head_of(args.turned_q, task, args.heads, args.turned);
    const float* latent = head_of(args.latent_q, task, args.heads, args.latent);
    float* to = head_of(args.q, task, args.heads, args.turned + args.latent);
    turn(args.turns, task.row, turned);
    sync_warp();
    for (std::uint32_t d = lane_id(); d < args.turned; d += kWarp) to[d] = turned[d];
    for (std::uint32_t d = lane_id(); d < args.latent; d += kWarp) to[args.turned + d] = latent[d];
    return;
  }
  const std::size_t source = args.source_rows != nullptr ? args.source_rows[task.row] : task.row;
  float* turned = args.turned_k + source * args.turned;
  float* latent = args.latents + source * args.latent;
  if (args.is_ready == 0) {
    turn(args.turns, task.row, turned);
    warp_head_norm(args.norm, args.eps, args.latent, latent);
    sync_warp();
  }
  const std::uint32_t sequence = args.tables.row_sequence[task.row];
  if (sequence == kNoSequence) return;  // true for all lanes of the warp, which have one row
  const KvToken<Codec, kv::KeyOrValue::key> token(args.tables.pages + args.tables.first_page[sequence], args.layer, 0,
                                                  args.tables.row_position[task.row]);
  for (std::uint32_t d = lane_id(); d < args.turned; d += kWarp) token.store(d, Codec::encode(turned[d], 1.0f));
  for (std::uint32_t d = lane_id(); d < args.latent; d += kWarp) token.store(args.turned + d, Codec::encode(latent[d], 1.0f));
  if (lane_id() == 0) token.store_pad();
}

}  // namespace

TESSERA_KERNEL(head_norm, kHeadThreads, HeadNormArgs) {
  const HeadTask task = head_task(args.heads);
  if (task.row >= args.rows) return;
  warp_head_norm(args.weight, args.eps, args.dim, head_of(args.x, task, args.heads, args.dim));
}

TESSERA_KERNEL(rope, kHeadThreads, RopeArgs) {
  const HeadTask task = head_task(args.heads);
  if (task.row >= args.rows) return;
  turn(args.turns, task.row, head_of(args.x, task, args.heads, args.dim));
}

TESSERA_KERNEL(append_kv_f32, kHeadThreads, AppendKvArgs) { append_kv<kv::F32>(args); }
TESSERA_KERNEL(append_kv_f16, kHeadThreads, AppendKvArgs) { append_kv<kv::F16>(args); }
TESSERA_KERNEL(append_kv_bf16, kHeadThreads, AppendKvArgs) { append_kv<kv::BF16>(args); }
TESSERA_KERNEL(append_kv_int8, kHeadThreads, AppendKvArgs) { append_kv<kv::Int8>(args); }
TESSERA_KERNEL(append_kv_int4, kHeadThreads, AppendKvArgs) { append_kv<kv::Int4>(args); }
TESSERA_KERNEL(append_kv_k8v4, kHeadThreads, AppendKvArgs) { append_kv<K8V4>(args); }
TESSERA_KERNEL(append_kv_fp8, kHeadThreads, AppendKvArgs) { append_kv<kv::Fp8>(args); }

TESSERA_KERNEL(rope_append_f32, kHeadThreads, RopeAppendArgs) { rope_append<kv::F32>(args); }
TESSERA_KERNEL(rope_append_f16, kHeadThreads, RopeAppendArgs) { rope_append<kv::F16>(args); }
TESSERA_KERNEL(rope_append_bf16, kHeadThreads, RopeAppendArgs) { rope_append<kv::BF16>(args); }
TESSERA_KERNEL(rope_append_int8, kHeadThreads, RopeAppendArgs) { rope_append<kv::Int8>(args); }
TESSERA_KERNEL(rope_append_int4, kHeadThreads, RopeAppendArgs) { rope_append<kv::Int4>(args); }
TESSERA_KERNEL(rope_append_k8v4, kHeadThreads, RopeAppendArgs) { rope_append<K8V4>(args); }
TESSERA_KERNEL(rope_append_fp8, kHeadThreads, RopeAppendArgs) { rope_append<kv::Fp8>(args); }

TESSERA_KERNEL(latent_append_f32, kHeadThreads, LatentAppendArgs) { latent_append<kv::F32>(args); }
TESSERA_KERNEL(latent_append_f16, kHeadThreads, LatentAppendArgs) { latent_append<kv::F16>(args); }
TESSERA_KERNEL(latent_append_bf16, kHeadThreads, LatentAppendArgs) { latent_append<kv::BF16>(args); }

}  // namespace tessera::cuda
