// The CPU backend's operations of recurrent layers: convolutions, and recurrences (delta_rule(), scan()) along each sequence. A task
// computes all rows of one sequence in order: for some columns (convolutions), or for one stripe of a head's state (recurrences), which
// is 16 neighbouring values for each key. The part of the state that a task needs then stays in the CPU's first-level cache.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backend/recurrent_state.hpp"
#include "core/math_inline.hpp"
#include "core/math_wide.hpp"
#include "cpu/cpu_backend.hpp"

namespace tessera::cpu {

namespace {

constexpr std::size_t kConvolvedColumns = 256;  // columns of a task
constexpr float kLengthEps = 1e-6f;             // added to the sum of squares of q and of k

}  // namespace

Status CpuBackend::convolve(const backend::Convolution& how, Act x) {
  Activation& at = written(x);
  if (n_rows_ == 0) return {};
  const std::size_t columns = at.columns, width = how.weight->n / columns, kept = width - 1;
  const std::size_t blocks = (columns + kConvolvedColumns - 1) / kConvolvedColumns;
  find_states(how.layer, 0);
  const std::span<const StateRows::Run> runs = state_rows_.runs();
  for_each(runs.size() * blocks, n_rows_ > runs.size() ? 1 : 4, [&](std::size_t item, std::byte*) {
    const StateRows::Run& run = runs[item / blocks];
    const std::size_t first = item % blocks * kConvolvedColumns, n = std::min(kConvolvedColumns, columns - first);
    std::array<float, (backend::kMostConvolved - 1) * kConvolvedColumns> old;  // inputs of the rows before the run's first
    for (std::size_t i = 0; i < kept; ++i) {
      if (run.before == nullptr) std::fill_n(old.data() + i * n, n, 0.0f);
      else std::memcpy(old.data() + i * n, run.before + i * columns + first, n * sizeof(float));
    }
    // Returns the input of row i of the run, counted from the run's first row. If i is negative, the row comes before the run.
    const auto input = [&](std::ptrdiff_t i) {
      return i < 0 ? old.data() + (static_cast<std::ptrdiff_t>(kept) + i) * static_cast<std::ptrdiff_t>(n)
                   : at.data + (run.first + static_cast<std::size_t>(i)) * columns + first;
    };
    for (std::size_t i = 0; i < run.count; ++i) {
      float* after = state_rows_.after(run.first + i);
      if (i + 1 < run.count && state_rows_.after(run.first + i + 1) == after) continue;
      for (std::size_t k = 0; k < kept; ++k) {
        const auto seen = static_cast<std::ptrdiff_t>(i + 1 + k) - static_cast<std::ptrdiff_t>(kept);
        std::memcpy(after + k * columns + first, input(seen), n * sizeof(float));
      }
    }
    // Goes from the last row to the first, because a row's output replaces its input. Earlier rows do not read that input.
    for (std::size_t i = run.count; i-- > 0;) {
      std::array<const float*, backend::kMostConvolved> inputs;
      for (std::size_t k = 0; k < width; ++k) inputs[k] = input(static_cast<std::ptrdiff_t>(i + k) - static_cast<std::ptrdiff_t>(kept));
      kernels_.recurrent.convolve({.inputs = inputs.data(),
                                   .weight = how.weight->data + first,
                                   .stride = columns,
                                   .bias = how.bias != nullptr ? how.bias->data + first : nullptr,
                                   .out = at.data + (run.first + i) * columns + first,
                                   .width = width,
                                   .n = n,
                                   .silu = how.silu});
    }
  });
  return {};
}

template <class Columns>
void CpuBackend::recur(const backend::Recurrence& how, const Activation& rows, const Activation& decays, const Activation& rates,
                       Activation& out, StateFn step, Columns columns) noexcept {
  const std::span<const StateRows::Run> runs = state_rows_.runs();
  const std::size_t stripes = backend::stripes_of(how.values), items = how.heads * stripes;
  const std::size_t stripe_floats = how.keys * backend::kStripe;
  const std::size_t work = stripe_floats * std::max<std::size_t>(1, n_rows_ / runs.size());  // state values that an item computes
  out.columns = std::size_t{how.heads} * how.values;
  for_each(runs.size() * items, std::max<std::size_t>(1, kValuesWorthSharing / work), [&](std::size_t item, std::byte*) {
    const StateRows::Run& run = runs[item / items];
    const std::size_t head = item % items / stripes, stripe = item % stripes, first = stripe * backend::kStripe;
    const std::size_t at = item % items * stripe_floats;
    const HeadColumns of = columns(head);
    const float* before = run.before != nullptr ? run.before + at : nullptr;
    for (std::size_t row = run.first; row < run.first + run.count; ++row) {
      float* after = state_rows_.after(row) + at;
      if (before == nullptr) {
        std::fill_n(after, stripe_floats, 0.0f);
        before = after;
      }
      const float* values = rows.data + row * rows.columns;
      step({.before = before,
            .after = after,
            .key = values + of.key,
            .query = values + of.query,
            .value = values + of.value + first,
            .out = out.data + row * out.columns + head * how.values + first,
            .keys = how.keys,
            .n = std::min<std::size_t>(backend::kStripe, how.values - first),
            .decay = decays.data[row * decays.columns + head],
            .rate = rates.data[row * rates.columns + head],
            .skip = how.skip != nullptr ? how.skip->data[head] : 0.0f});
      before = after;
    }
  });
}

namespace {

std::size_t group_of(const backend::Recurrence& how, std::size_t head) noexcept {
  return how.group_order == StateGroups::cyclic ? head % how.groups : head / (how.heads / how.groups);
}

}  // namespace

Status CpuBackend::delta_rule(const backend::Recurrence& how, Act qkv, Act steps, Act betas, Act out) {
  const Activation &rows = written(qkv), &decays = written(steps), &rates = written(betas);
  Activation& to = written(out);
  if (n_rows_ == 0) return {};
  const std::size_t keys = std::size_t{how.groups} * how.keys;  // columns of all groups' keys
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(how.keys)));
  for_each_row(2 * keys + 64 * how.heads, [&](std::size_t row, std::byte*) {
    for (std::size_t at = 0; at < 2 * keys; at += how.keys) {
      float* values = rows.data + row * rows.columns + at;
      kernels_.elementwise.l2_norm(values, kLengthEps, at < keys ? scale : 1.0f, how.keys, values);
    }
    for (std::size_t head = 0; head < how.heads; ++head) {
      float &decay = decays.data[row * decays.columns + head], &rate = rates.data[row * rates.columns + head];
      decay = math::inlined::exp(how.rate->data[head] * math::wide::softplus(decay + how.step_bias->data[head]));
      rate = 1.0f / (1.0f + math::inlined::exp(-rate));
    }
  });
  find_states(how.layer, how.state_offset);
  recur(how, rows, decays, rates, to, kernels_.recurrent.delta_rule, [&](std::size_t head) {
    const std::size_t group = group_of(how, head) * how.keys;
    return HeadColumns{.key = keys + group, .query = group, .value = 2 * keys + head * how.values};
  });
  return {};
}

Status CpuBackend::scan(const backend::Recurrence& how, Act xbc, Act steps, Act decays, Act out) {
  const Activation &rows = act(xbc), &rates = written(steps);
  Activation &kept = written(decays), &to = written(out);
  if (n_rows_ == 0) return {};
  kept.columns = how.heads;
  for_each_row(64 * how.heads, [&](std::size_t row, std::byte*) {
    for (std::size_t head = 0; head < how.heads; ++head) {
      float& rate = rates.data[row * rates.columns + head];
      rate = math::wide::softplus(rate + how.step_bias->data[head]);
      kept.data[row * kept.columns + head] = math::inlined::exp(how.rate->data[head] * rate);
    }
  });
  find_states(how.layer, how.state_offset);
  const std::size_t x = std::size_t{how.heads} * how.values, keys = std::size_t{how.groups} * how.keys;
  recur(how, rows, kept, rates, to, kernels_.recurrent.scan, [&](std::size_t head) {
    const std::size_t group = group_of(how, head) * how.keys;
    return HeadColumns{.key = x + group, .query = x + keys + group, .value = head * how.values};
  });
  return {};
}

Status CpuBackend::group_norm(const Vector& weight, float eps, std::uint32_t n_groups, Act x) {
  Activation& at = written(x);
  const std::size_t n = at.columns / n_groups;
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    for (std::size_t group = 0; group < n_groups; ++group) {
      float* values = at.data + row * at.columns + group * n;
      kernels_.elementwise.rms_norm(values, weight.data + group * n, eps, n, values);
    }
  });
  return {};
}

Status CpuBackend::multiply(Act y, Act x) {
  const Activation& from = act(y);
  Activation& at = written(x);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    kernels_.elementwise.multiply(from.data + row * at.columns, at.columns, at.data + row * at.columns);
  });
  return {};
}

}  // namespace tessera::cpu
