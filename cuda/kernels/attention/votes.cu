#include "cuda/kernels/attention/votes.hpp"

#include "core/math_inline.hpp"
#include "cuda/kernels/device.hpp"
#include "cuda/kernels/kv_access.hpp"

namespace tessera::cuda {

namespace {

inline constexpr unsigned kVoteWarps = kVoteThreads / kWarp;

// Returns the largest value of all threads. `shared` may be used again after the next barrier.
TESSERA_DEVICE float largest_of_block(float value, float* shared) {
  const float largest = warp_max(value);
  if (lane_id() == 0) shared[warp_id()] = largest;
  sync_block();
  float all = shared[0];
  for (unsigned i = 1; i < kVoteWarps; ++i) all = shared[i] > all ? shared[i] : all;
  return all;
}
TESSERA_DEVICE float sum_of_block(float value, float* shared) {
  const float sum = warp_sum(value);
  if (lane_id() == 0) shared[warp_id()] = sum;
  sync_block();
  float all = shared[0];
  for (unsigned i = 1; i < kVoteWarps; ++i) all = all + shared[i];
  return all;
}

template <class Codec>
TESSERA_DEVICE void count_votes(const VoteArgs& args) {
  using KeyCodec = typename CodecsOf<Codec>::Key;
  TESSERA_SHARED float shared[2][kVoteWarps];
  const std::uint32_t row = args.voters[blockIdx.x], head = blockIdx.y;
  const std::uint32_t sequence = args.tables.row_sequence[row];
  if (sequence == kNoSequence) return;  // true for all threads of the block
  const std::uint32_t dim = args.layer.key_dim;
  auto* query = static_cast<float*>(dynamic_shared());
  const float* from = args.q + (std::uint64_t{row} * args.heads + head) * dim;
  for (std::uint32_t d = threadIdx.x; d < dim; d += kVoteThreads) query[d] = from[d];
  sync_block();
  if constexpr (KeyCodec::rotates) {
    if (warp_id() == 0) warp_rotate(query, dim, kv::Turn::out);
    sync_block();
  }

  const KeyRange window = visible_keys(args.tables.row_position[row], args.window);
  const std::uint64_t globals = global_keys(window, args.globals).end, n = globals + (window.end - window.begin);
  const auto position_of = [&](std::uint64_t i) { return i < globals ? i : window.begin + (i - globals); };
  const std::uint64_t* pages = args.tables.pages + args.tables.first_page[sequence];
  float* scores = args.scores + (std::uint64_t{blockIdx.x} * args.heads + head) * args.stride;
  float top = -__builtin_inff();
  for (std::uint64_t i = threadIdx.x; i < n; i += kVoteThreads) {
    const KvToken<KeyCodec, kv::KeyOrValue::key> key(pages, args.layer, head / args.group, position_of(i));
    const float scale = key.scale();
    float sum = 0.0f;
    for (std::uint32_t d = 0; d < dim; ++d) sum = fma(query[d], key.number(d, scale), sum);
    sum = sum * args.scale;
    if (args.softcap != 0.0f) sum = args.softcap * math::inlined::tanh(sum / args.softcap);
    scores[i] = sum;
    top = sum > top ? sum : top;
  }
  top = largest_of_block(top, shared[0]);
  float sum = 0.0f;
  for (std::uint64_t i = threadIdx.x; i < n; i += kVoteThreads) {
    scores[i] = math::inlined::exp(scores[i] - top);
    sum = sum + scores[i];
  }
  sum = sum_of_block(sum, shared[1]);
  if (args.sinks != nullptr) sum = sum + math::inlined::exp(args.sinks[head] - top);
  const float share = 1.0f / sum;
  for (std::uint64_t i = threadIdx.x; i < n; i += kVoteThreads) {
    const float weight = scores[i] * share;
    if (!(weight <= 1.0f)) continue;
    const auto units = static_cast<std::uint64_t>(weight * weight * args.units + 0.5f);
    if (units != 0) atomic_add(args.sums + std::uint64_t{blockIdx.x} * args.stride + position_of(i), units);
  }
}

}  // namespace

TESSERA_KERNEL(count_votes_f32, kVoteThreads, VoteArgs) { count_votes<kv::F32>(args); }
TESSERA_KERNEL(count_votes_f16, kVoteThreads, VoteArgs) { count_votes<kv::F16>(args); }
TESSERA_KERNEL(count_votes_bf16, kVoteThreads, VoteArgs) { count_votes<kv::BF16>(args); }
TESSERA_KERNEL(count_votes_int8, kVoteThreads, VoteArgs) { count_votes<kv::Int8>(args); }
TESSERA_KERNEL(count_votes_int4, kVoteThreads, VoteArgs) { count_votes<kv::Int4>(args); }
TESSERA_KERNEL(count_votes_k8v4, kVoteThreads, VoteArgs) { count_votes<K8V4>(args); }
TESSERA_KERNEL(count_votes_fp8, kVoteThreads, VoteArgs) { count_votes<kv::Fp8>(args); }

}  // namespace tessera::cuda
