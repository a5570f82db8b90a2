// The CPU backend's computing half: how the operations' rows and panels are spread over the executor.
#include "cpu/cpu_backend.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "cpu/attention.hpp"
#include "cpu/elementwise.hpp"
#include "cpu/linear.hpp"
#include "cpu/move_tokens.hpp"
#include "support/error.hpp"
#include "support/fp_state.hpp"

namespace tessera::cpu {

namespace {

// Work below this many rows costs less than waking a thread.
constexpr std::size_t kRowsWorthSharing = 8;
// Whatever a host's executor says of itself: each slot has a scratch.
constexpr std::size_t kMaxSlots = 1024;

}  // namespace

CpuBackend::CpuBackend(Executor& executor, Memory& memory)
    : executor_(executor), memory_(memory), slots_(std::clamp<std::size_t>(executor.concurrency(), 1, kMaxSlots)) {}

template <class Fn>
void CpuBackend::for_each(std::size_t n, std::size_t grain, Fn&& fn) noexcept {
  struct Job {
    Fn& fn;
    std::size_t n, grain;
    float* scratch;
    std::size_t scratch_size;
    std::atomic<std::size_t> next{0};
  } job{fn, n, grain, scratch_, scratch_size_};
  // One task per slot; each takes stretches of items until there are none. Which slot does an item never matters.
  const auto task = [](void* context, std::size_t slot) {
    const detail::FpState fp_state;
    auto& work = *static_cast<Job*>(context);
    float* scratch = work.scratch + slot * work.scratch_size;
    for (std::size_t i = work.next.fetch_add(work.grain, std::memory_order_relaxed); i < work.n;
         i = work.next.fetch_add(work.grain, std::memory_order_relaxed)) {
      for (std::size_t j = i; j < std::min(i + work.grain, work.n); ++j) work.fn(j, scratch);
    }
  };
  const std::size_t pieces = (n + grain - 1) / grain;
  if (pieces <= 1) {
    task(&job, 0);
  } else {
    executor_.parallel_for(std::min(slots_, pieces), task, &job);
  }
}

template <class Fn>
void CpuBackend::for_each_row(Fn&& fn) noexcept {
  for_each(n_rows_, kRowsWorthSharing, [&](std::size_t row, float*) { fn(row); });
}

std::vector<backend::Explanation> CpuBackend::explain() const {
  constexpr const char* kFamily = "reference-f32";
  std::vector<backend::Explanation> lines;
  std::vector<std::pair<DType, std::size_t>> types;
  for (const Matrix& matrix : matrices_) {
    const auto at = std::find_if(types.begin(), types.end(), [&](auto& t) { return t.first == matrix.shape.dtype; });
    if (at == types.end()) {
      types.emplace_back(matrix.shape.dtype, 1);
    } else {
      ++at->second;
    }
  }
  for (const auto& [dtype, count] : types) {
    lines.push_back({fmt::format("linear ({} matrices)", count),
                     is_panel_form(dtype) ? "portable tile 16x256, packed panels" : "portable tile 16x256, file blocks",
                     kFamily, std::string(to_string(dtype))});
  }
  lines.push_back({"attention", "portable, key chunks of 256, online softmax", kFamily, ""});
  lines.push_back({"append_kv", "portable", kFamily, ""});
  for (const char* operation : {"embed", "add_positions", "norm", "rope", "activation", "residual"}) {
    lines.push_back({operation, "portable", kFamily, "F32"});
  }
  return lines;
}

Status CpuBackend::move_tokens(const KvView& kv, const backend::KvMove& move, const backend::RopeTable& rope) {
  std::array<float, kMaxHeadDim> table;  // no allocation: the session has been marked as edited already
  const std::span<float> turn = std::span(table).first(2 * rope.frequencies.size());
  turn_back(rope, move.from - move.to, turn);
  for (std::size_t layer = 0; layer < kv.layout->layers.size(); ++layer) {
    for_each(kv.layout->layers[layer].shape.kv_heads, 1, [&](std::size_t head, float*) {
      cpu::move_tokens(kv, layer, head, move, rope, turn);
    });
  }
  return {};
}

Status CpuBackend::begin(const backend::StepTables& tables) {
  if (tables.rows.size() > max_rows_ || tables.sequences.size() > max_rows_) {
    return detail::make_error(ErrorCode::internal, "a step of {} rows in a workspace for {}", tables.rows.size(),
                              max_rows_);
  }
  rows_.assign(tables.rows.begin(), tables.rows.end());
  sequences_.assign(tables.sequences.begin(), tables.sequences.end());
  n_rows_ = rows_.size();
  rope_pairs_ = tables.rope.frequencies.size();
  rope_interleaved_ = tables.rope.interleaved;
  if (rope_pairs_ > 0) {
    for_each_row([&](std::size_t row) {
      rope_table(tables.rope.frequencies.data(), rope_pairs_, rows_[row].position, rope_ + row * 2 * rope_pairs_);
    });
  }
  return {};
}

Status CpuBackend::end() { return {}; }

Status CpuBackend::embed(const Matrix& table, Act x) {
  Activation& out = act(x);
  out.columns = table.shape.inputs;
  for_each_row([&](std::size_t row) {
    float* to = out.data + row * out.columns;
    if (rows_[row].embedding != nullptr) {
      std::memcpy(to, rows_[row].embedding, out.columns * sizeof(float));
    } else {
      unpack_row(table, static_cast<std::uint64_t>(rows_[row].token), to);
    }
  });
  return {};
}

Status CpuBackend::add_positions(const Matrix& table, Act x) {
  Activation& out = act(x);
  Activation& scratch = act(Act::linear);  // free at this point of a step, and as wide as x
  for_each_row([&](std::size_t row) {
    float* position = scratch.data + row * out.columns;
    unpack_row(table, rows_[row].position, position);
    float* to = out.data + row * out.columns;
    for (std::size_t i = 0; i < out.columns; ++i) to[i] += position[i];
  });
  return {};
}

Status CpuBackend::norm(backend::NormKind kind, const Vector& weight, const Vector* bias, float eps, Act in, Act out) {
  const Activation& from = act(in);
  Activation& to = act(out);
  const std::size_t n = to.columns = from.columns;
  for_each_row([&](std::size_t row) {
    if (kind == backend::NormKind::rms) {
      rms_norm(from.data + row * n, weight.data, eps, n, to.data + row * n);
    } else {
      layer_norm(from.data + row * n, weight.data, bias != nullptr ? bias->data : nullptr, eps, n, to.data + row * n);
    }
  });
  return {};
}

Status CpuBackend::head_norm(const Vector& weight, float eps, std::uint32_t n_heads, Act x) {
  Activation& at = act(x);
  for_each_row([&](std::size_t row) {
    for (std::size_t head = 0; head < n_heads; ++head) {
      float* values = at.data + row * at.columns + head * weight.n;
      rms_norm(values, weight.data, eps, weight.n, values);
    }
  });
  return {};
}

Status CpuBackend::linear(const Matrix& weight, Act in, Act out) {
  const Activation& from = act(in);
  Activation& to = act(out);
  to.columns = weight.shape.outputs;
  const std::size_t panels = (weight.shape.outputs + kPanel - 1) / kPanel;
  // About four pieces a slot even out threads of unequal speed.
  const std::size_t grain = std::max<std::size_t>(1, panels / (4 * slots_));
  for_each(panels, grain, [&](std::size_t panel, float* scratch) {
    linear_panel(weight, panel, from.data, n_rows_, to.data, scratch);
  });
  return {};
}

Status CpuBackend::add_bias(const Vector& bias, Act x) {
  Activation& at = act(x);
  for_each_row([&](std::size_t row) {
    float* to = at.data + row * at.columns;
    for (std::size_t i = 0; i < at.columns; ++i) to[i] += bias.data[i];
  });
  return {};
}

Status CpuBackend::add(Act y, Act x) {
  const Activation& from = act(y);
  Activation& at = act(x);
  for_each_row([&](std::size_t row) {
    const float* add = from.data + row * at.columns;
    float* to = at.data + row * at.columns;
    for (std::size_t i = 0; i < at.columns; ++i) to[i] += add[i];
  });
  return {};
}

Status CpuBackend::rope(std::uint32_t n_heads, Act x) {
  Activation& at = act(x);
  const std::size_t head_dim = at.columns / n_heads;
  for_each_row([&](std::size_t row) {
    for (std::size_t head = 0; head < n_heads; ++head) {
      cpu::rope(rope_ + row * 2 * rope_pairs_, rope_pairs_, rope_interleaved_,
                at.data + row * at.columns + head * head_dim);
    }
  });
  return {};
}

Status CpuBackend::append_kv(std::uint32_t layer, Act k, Act v) {
  const Activation& keys = act(k);
  const Activation& values = act(v);
  for_each_row([&](std::size_t row) {
    const KvView& kv = sequences_[rows_[row].sequence];
    const KvLayerShape& shape = kv.layout->layers[layer].shape;
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      write_kv(kv, layer, head, rows_[row].position, keys.data + row * keys.columns + head * shape.key_dim,
               values.data + row * values.columns + head * shape.value_dim);
    }
  });
  return {};
}

Status CpuBackend::attention(const backend::AttentionShape& shape, Act q, Act out) {
  const Activation& queries = act(q);
  Activation& to = act(out);
  if (n_rows_ == 0) return {};
  const KvLayerShape& dims = sequences_[0].layout->layers[shape.layer].shape;  // of one model: the same for all
  const std::size_t group = shape.n_heads / dims.kv_heads;
  to.columns = std::size_t{shape.n_heads} * dims.value_dim;
  for_each(n_rows_ * dims.kv_heads, 1, [&](std::size_t item, float* scratch) {
    const std::size_t row = item / dims.kv_heads;
    const std::size_t head = item % dims.kv_heads;
    attend(sequences_[rows_[row].sequence], shape, head, rows_[row].position,
           queries.data + row * queries.columns + head * group * dims.key_dim,
           to.data + row * to.columns + head * group * dims.value_dim, scratch);
  });
  return {};
}

Status CpuBackend::activate(backend::ActivationKind kind, Act x) {
  Activation& at = act(x);
  for_each_row([&](std::size_t row) {
    float* values = at.data + row * at.columns;
    cpu::activate(kind, values, at.columns, values);
  });
  return {};
}

Status CpuBackend::activate_gated(backend::ActivationKind kind, Act gate, Act up) {
  Activation& gates = act(gate);
  Activation& at = act(up);
  for_each_row([&](std::size_t row) {
    float* gate_values = gates.data + row * at.columns;
    float* values = at.data + row * at.columns;
    cpu::activate(kind, gate_values, at.columns, gate_values);
    for (std::size_t i = 0; i < at.columns; ++i) values[i] = gate_values[i] * values[i];
  });
  return {};
}

Status CpuBackend::select_rows(std::span<const std::uint32_t> rows, Act in, Act out) {
  const Activation& from = act(in);
  Activation& to = act(out);
  to.columns = from.columns;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(to.data + i * to.columns, from.data + rows[i] * from.columns, to.columns * sizeof(float));
  }
  n_rows_ = rows.size();
  return {};
}

Status CpuBackend::read(Act x, std::uint32_t row, std::span<float> out) {
  const Activation& at = act(x);
  std::memcpy(out.data(), at.data + row * at.columns, std::min(out.size(), at.columns) * sizeof(float));
  return {};
}

}  // namespace tessera::cpu
