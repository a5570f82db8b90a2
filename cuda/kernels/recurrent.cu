// The kernels of recurrent layers: convolutions and recurrences along each sequence. Each thread computes its own columns or state values,
// and goes through the rows of a run (the step's consecutive rows of one sequence).
#include "cuda/kernels/recurrent.hpp"

#include <cmath>

#include "backend/recurrent_state.hpp"
#include "core/math_inline.hpp"
#include "core/math_wide.hpp"
#include "cuda/kernels/device.hpp"

namespace tessera::cuda {

namespace {

inline constexpr float kLengthEps = 1e-6f;  // added to the sum of squares of q and of k

TESSERA_DEVICE float* state_at(const StateRows& states, std::uint64_t page) { return reinterpret_cast<float*>(page + states.offset); }

TESSERA_DEVICE float sigmoid(float v) { return 1.0f / (1.0f + math::inlined::exp(-v)); }

// Divides a vector by its length and multiplies it by `scale`. Called by a whole warp.
TESSERA_DEVICE void warp_l2_norm(float* values, std::uint32_t n, float scale) {
  float sum = 0.0f;
  for (std::uint32_t i = lane_id(); i < n; i += kWarp) sum = fma(values[i], values[i], sum);
  const float by = 1.0f / std::sqrt(warp_sum(sum) + kLengthEps);
  for (std::uint32_t i = lane_id(); i < n; i += kWarp) values[i] = (values[i] * by) * scale;
}

// Four chains of a sum over keys (key mod 4).
struct Chains {
  float sum[4] = {};
  TESSERA_DEVICE void add(std::uint32_t key, float a, float b) { sum[key % 4] = fma(a, b, sum[key % 4]); }
  [[nodiscard]] TESSERA_DEVICE float total() const { return (sum[0] + sum[2]) + (sum[1] + sum[3]); }
};

// The state values that a thread computes: one value of a head for all keys, 16 floats apart.
class StateColumn {
 public:
  TESSERA_DEVICE StateColumn(const RecurrenceArgs& args, std::uint32_t head, std::uint32_t value)
      : args_(args),
        at_((std::uint64_t{head} * backend::stripes_of(args.values) + value / backend::kStripe) * args.keys * backend::kStripe +
            value % backend::kStripe) {}

  // Goes through the rows of the run. step(row, before, after) computes a row; `before` is nullptr for a state of zeros.
  template <class Step>
  TESSERA_DEVICE void each_row(const StateRun& run, Step step) const {
    const float* before = run.before != 0 ? state_at(args_.states, run.before) + at_ : nullptr;
    for (std::uint32_t row = run.first; row < run.first + run.count; ++row) {
      float* after = state_at(args_.states, args_.states.after[row]) + at_;
      step(row, before, after);
      before = after;
    }
  }

 private:
  const RecurrenceArgs& args_;
  std::uint64_t at_;
};

TESSERA_DEVICE float state_of(const float* state, std::uint32_t key) { return state == nullptr ? 0.0f : state[key * backend::kStripe]; }

// Updates the state S [keys] that a head has for one of its value dimensions: S = decay * S + key * added. Reads the old S from `before`
// and writes the new S to `after`. Returns the dot product of the query and the new S.
TESSERA_DEVICE float update(const float* before, float* after, std::uint32_t keys, float decay, const float* key, const float* query,
                            float added) {
  Chains seen;
  for (std::uint32_t i = 0; i < keys; ++i) {
    const float state = fma(decay, state_of(before, i), key[i] * added);
    after[i * backend::kStripe] = state;
    seen.add(i, query[i], state);
  }
  return seen.total();
}

// Computes one value dimension of one head, in all rows of a run; each thread has its own dimension. For each row, calls result(state
// before, state after, key, query, value, decay, rate), which writes the state after the row and returns the row's output.
template <class Result>
TESSERA_DEVICE void recur(const RecurrenceArgs& args, Result result) {
  const std::uint32_t head = blockIdx.y, value = blockIdx.z * kStateThreads + threadIdx.x;
  if (value >= backend::stripes_of(args.values) * backend::kStripe) return;
  const std::uint32_t group = args.order == StateGroups::cyclic ? head % args.groups : head / (args.heads / args.groups);
  const StateColumn column(args, head, value);
  column.each_row(args.states.runs[blockIdx.x], [&](std::uint32_t row, const float* before, float* after) {
    const float* x = args.x + std::size_t{row} * args.x_stride;
    const bool is_there = value < args.values;  // a stripe's lanes without a value stay 0
    const float out = result(before, after, x + args.first_key + group * args.keys, x + args.first_query + group * args.keys,
                             is_there ? x[args.first_value + head * args.values + value] : 0.0f,
                             args.decays[std::size_t{row} * args.decays_stride + head], args.rates[std::size_t{row} * args.rates_stride + head]);
    if (is_there) args.out[(std::size_t{row} * args.heads + head) * args.values + value] = out;
  });
}

}  // namespace

TESSERA_KERNEL(convolve_rows, kStateThreads, ConvolveArgs) {
  const std::uint32_t column = blockIdx.y * kStateThreads + threadIdx.x;
  if (column >= args.columns) return;
  const StateRun run = args.states.runs[blockIdx.x];
  const std::uint32_t kept = args.width - 1;
  float seen[backend::kMostConvolved];  // the inputs that the present row sees; the last one is its own
  for (std::uint32_t k = 0; k < kept; ++k) {
    seen[k] = run.before == 0 ? 0.0f : state_at(args.states, run.before)[std::size_t{k} * args.columns + column];
  }
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const std::uint32_t row = run.first + i;
    float& x = args.x[std::size_t{row} * args.columns + column];
    seen[kept] = x;
    float sum = args.bias != nullptr ? args.bias[column] : 0.0f;
    for (std::uint32_t k = 0; k < args.width; ++k) sum = sum + args.weight[std::size_t{k} * args.columns + column] * seen[k];
    x = args.silu != 0 ? sum / (1.0f + math::inlined::exp(-sum)) : sum;
    for (std::uint32_t k = 0; k < kept; ++k) seen[k] = seen[k + 1];
    if (i + 1 < run.count && args.states.after[row + 1] == args.states.after[row]) continue;
    float* after = state_at(args.states, args.states.after[row]);
    for (std::uint32_t k = 0; k < kept; ++k) after[std::size_t{k} * args.columns + column] = seen[k];
  }
}

TESSERA_KERNEL(prepare_delta, kPrepareThreads, PrepareStateArgs) {
  float* row = args.qkv + std::size_t{blockIdx.x} * args.qkv_stride;
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(args.keys)));
  for (std::uint32_t at = warp_id(); at < 2 * args.groups; at += kPrepareThreads / kWarp) {
    warp_l2_norm(row + std::size_t{at} * args.keys, args.keys, at < args.groups ? scale : 1.0f);
  }
  for (std::uint32_t head = threadIdx.x; head < args.heads; head += kPrepareThreads) {
    float& decay = args.steps[std::size_t{blockIdx.x} * args.steps_stride + head];
    float& beta = args.rates[std::size_t{blockIdx.x} * args.rates_stride + head];
    decay = math::inlined::exp(args.rate[head] * math::wide::softplus(decay + args.step_bias[head]));
    beta = sigmoid(beta);
  }
}

TESSERA_KERNEL(prepare_scan, kPrepareThreads, PrepareStateArgs) {
  for (std::uint32_t head = threadIdx.x; head < args.heads; head += kPrepareThreads) {
    float& step = args.steps[std::size_t{blockIdx.x} * args.steps_stride + head];
    step = math::wide::softplus(step + args.step_bias[head]);
    args.rates[std::size_t{blockIdx.x} * args.rates_stride + head] = math::inlined::exp(args.rate[head] * step);
  }
}

TESSERA_KERNEL(delta_rule, kStateThreads, RecurrenceArgs) {
  recur(args, [&](const float* before, float* after, const float* key, const float* query, float value, float decay, float rate) {
    Chains recalled;
    for (std::uint32_t i = 0; i < args.keys; ++i) recalled.add(i, key[i], state_of(before, i));
    const float wrong = value - decay * recalled.total();
    return update(before, after, args.keys, decay, key, query, rate * wrong);
  });
}

TESSERA_KERNEL(scan_rows, kStateThreads, RecurrenceArgs) {
  recur(args, [&](const float* before, float* after, const float* key, const float* query, float value, float decay, float rate) {
    return update(before, after, args.keys, decay, key, query, rate * value) + args.skip[blockIdx.y] * value;
  });
}

}  // namespace tessera::cuda
