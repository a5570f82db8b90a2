// The CPU backend's operations, which divide their rows and panels among the executor's threads.
#include "cpu/cpu_backend.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "backend/rope_table.hpp"
#include "core/error.hpp"
#include "core/math.hpp"
#include "core/math_inline.hpp"
#include "cpu/attention/move_tokens.hpp"
#include "cpu/attention/rope.hpp"
#include "cpu/instruction_sets.hpp"

namespace tessera::cpu {

namespace {

void multiply_by(float factor, std::span<float> values) noexcept {
  for (float& value : values) value *= factor;
}

}  // namespace

CpuBackend::CpuBackend(Executor& executor, Memory& memory, InstructionSet set, Numerics numerics, std::string refused)
    : memory_(memory), set_(set), refused_(std::move(refused)), numerics_(numerics), kernels_(kernels_of(set)), tasks_(executor),
      weights_(memory, tasks_) {}

std::uint64_t CpuBackend::workspace_bytes(const backend::WorkspaceShape& shape) const noexcept {
  return Workspace::lay_out(shape, {kernels_, numerics_, tasks_.slots()}, nullptr).bytes;
}

Status CpuBackend::reserve_workspace(const backend::WorkspaceShape& shape) {
  TESSERA_TRY(workspace_, Buffer::allocate(memory_, workspace_bytes(shape), "the workspace"));
  space_ = Workspace::lay_out(shape, {kernels_, numerics_, tasks_.slots()}, workspace_.data());
  for (std::size_t i = 0; i < backend::kActs; ++i) acts_[i] = {.data = space_.acts[i], .capacity = shape.columns[i]};
  tasks_.set_scratch(space_.scratch, space_.scratch_bytes);
  voters_.reserve(shape, space_.votes);
  experts_.reserve(shape, space_);
  max_rows_ = shape.rows;
  turns_.reserve(shape.ropes);
  rows_.reserve(shape.rows);
  state_rows_.reserve(shape.rows);
  attention_plan_.reserve(shape.rows);
  sequences_.reserve(shape.rows);
  return {};
}

Status CpuBackend::move_tokens(const KvView& kv, const backend::KvMove& move, std::span<const backend::RopeTable> ropes) {
  std::array<float, kMaxHeadDim> table;  // on the stack, because an allocation could fail, and the session is marked as edited already
  for (std::size_t layer = 0; layer < kv.layout->layers.size(); ++layer) {
    if (!kv.layout->is_first_at_its_place(layer)) continue;  // the layer shares the keys of a layer that has been moved
    const backend::RopeTable& rope = ropes[layer];
    const std::span<float> turn = std::span(table).first(2 * rope.frequencies.size());
    backend::turn_back(rope, move.from - move.to, turn);
    const std::uint64_t skipped = move.skipped(kv.layout->layers[layer].group);
    const backend::KvMove rest{.from = move.from + skipped, .to = move.to + skipped, .count = move.count - skipped};
    for_each(kv.layout->layer(layer).shape.kv_heads, 1, [&](std::size_t head, std::byte*) {
      cpu::move_tokens(kv, layer, head, rest, rope, turn);
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
  wanted_ = tables.wanted;
  selections_ = tables.selections;
  changes_ = tables.changes;
  prepared_kind_ = {};
  turns_.clear();
  TESSERA_TRY_STATUS(voters_.begin(tables.votes, rows_));
  std::size_t floats = 0, pairs = 0;
  for (const backend::RopeTable& rope : tables.ropes) {
    const std::size_t n = rope.frequencies.size();
    turns_.push_back({.factors = space_.rope + floats, .pairs = n, .interleaved = rope.pairs == RopePairs::interleaved});
    pairs += n;
    floats += n_rows_ * 4 * n;
  }
  if (floats > space_.rope_floats) {
    return detail::make_error(ErrorCode::internal, "rope tables of {} numbers in a workspace for {}", floats, space_.rope_floats);
  }
  if (pairs == 0) return {};
  for_each_row(64 * pairs, [&](std::size_t row, std::byte*) {  // a sine and cosine cost about as much as 64 values
    for (std::size_t i = 0; i < turns_.size(); ++i) rope_factors(tables.ropes[i], rows_[row].position, turns_[i].row(row));
  });
  return {};
}

Status CpuBackend::end() { return {}; }

Status CpuBackend::embed(const Matrix& table, float scale, Act x) {
  Activation& out = written(x);
  out.columns = table.shape.inputs;
  for_each_row(out.columns, [&](std::size_t row, std::byte*) {
    float* to = out.data + row * out.columns;
    if (rows_[row].embedding != nullptr) {
      std::memcpy(to, rows_[row].embedding, out.columns * sizeof(float));
    } else {
      unpack_row(table, static_cast<std::uint64_t>(rows_[row].token), to);
      if (scale != 1.0f) multiply_by(scale, {to, out.columns});
    }
  });
  return {};
}

// Adds a row of a table to each row of x. `number` returns the number of the table's row for a row of the step.
template <class Number>
void CpuBackend::add_rows_of(const Matrix& table, Act scratch, Act x, Number number) {
  Activation& out = written(x);
  Activation& unpacked = written(scratch);
  for_each_row(out.columns, [&](std::size_t row, std::byte*) {
    float* values = unpacked.data + row * out.columns;
    unpack_row(table, number(rows_[row]), values);
    kernels_.elementwise.add(values, out.columns, out.data + row * out.columns);
  });
}

Status CpuBackend::add_positions(const Matrix& table, Act scratch, Act x) {
  add_rows_of(table, scratch, x, [](const backend::RowTable& row) { return row.position; });
  return {};
}

Status CpuBackend::add_segments(const Matrix& table, Act scratch, Act x) {
  add_rows_of(table, scratch, x, [](const backend::RowTable& row) { return std::uint64_t{row.segment}; });
  return {};
}

Status CpuBackend::gather(const Matrix& table, float scale, Act out) {
  Activation& to = written(out);
  to.columns = table.shape.inputs;
  for_each_row(to.columns, [&](std::size_t row, std::byte*) {
    float* values = to.data + row * to.columns;
    unpack_row(table, static_cast<std::uint64_t>(rows_[row].token), values);
    if (scale != 1.0f) multiply_by(scale, {values, to.columns});
  });
  return {};
}

Status CpuBackend::take_columns(Act in, std::uint64_t first, std::uint64_t count, Act out) {
  const Activation& from = act(in);
  Activation& to = written(out);
  to.columns = static_cast<std::size_t>(count);
  for_each_row(to.columns, [&](std::size_t row, std::byte*) {
    std::memcpy(to.data + row * to.columns, from.data + row * from.columns + first, to.columns * sizeof(float));
  });
  return {};
}

Result<backend::HostRows> CpuBackend::host_rows(Act x, std::size_t columns) {
  Activation& at = written(x);
  const backend::HostRows rows{.data = at.data, .rows = n_rows_, .columns = at.columns};
  if (columns != 0) at.columns = columns;
  return rows;
}

Status CpuBackend::set_tokens(std::span<const Token> tokens) {
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].token = tokens[i];
  return {};
}

Status CpuBackend::scale(float factor, Act x) {
  Activation& at = written(x);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    multiply_by(factor, {at.data + row * at.columns, at.columns});
  });
  return {};
}

Status CpuBackend::softcap(float cap, Act x) {
  Activation& at = written(x);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    for (float& value : std::span(at.data + row * at.columns, at.columns)) value = cap * math::inlined::tanh(value / cap);
  });
  return {};
}

Status CpuBackend::scale_by_position(double rate, std::uint64_t length, Act x) {
  Activation& at = written(x);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    const std::uint64_t times = rows_[row].position / length;
    if (times == 0) return;
    multiply_by(static_cast<float>(1.0 + rate * math::log(1.0 + static_cast<double>(times))),
                {at.data + row * at.columns, at.columns});
  });
  return {};
}

void CpuBackend::norm_row(const backend::Norm& norm, const float* x, std::size_t n, float* out) const noexcept {
  const float* bias = norm.bias != nullptr ? norm.bias->data : nullptr;
  if (norm.kind == NormKind::rms) kernels_.elementwise.rms_norm(x, norm.weight->data, norm.eps, n, out);
  else kernels_.elementwise.layer_norm(x, norm.weight->data, bias, norm.eps, n, out);
}

Status CpuBackend::norm(const backend::Norm& norm, Act in, Act out) {
  const Activation& from = act(in);
  Activation& to = written(out);
  const std::size_t n = to.columns = from.columns;
  for_each_row(n, [&](std::size_t row, std::byte*) { norm_row(norm, from.data + row * n, n, to.data + row * n); });
  return {};
}

Status CpuBackend::head_norm(const Vector& weight, float eps, std::uint32_t n_heads, Act x) {
  Activation& at = written(x);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    for (std::size_t head = 0; head < n_heads; ++head) {
      float* values = at.data + row * at.columns + head * weight.n;
      kernels_.elementwise.rms_norm(values, weight.data, eps, weight.n, values);
    }
  });
  return {};
}

Status CpuBackend::add_bias(const Vector& bias, Act x) {
  Activation& at = written(x);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    kernels_.elementwise.add(bias.data, at.columns, at.data + row * at.columns);
  });
  return {};
}

Status CpuBackend::add(Act y, Act x) {
  const Activation& from = act(y);
  Activation& at = written(x);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    kernels_.elementwise.add(from.data + row * at.columns, at.columns, at.data + row * at.columns);
  });
  return {};
}

Status CpuBackend::rope(std::uint32_t table, std::uint32_t n_heads, Act x) {
  const Turns& turns = turns_[table];
  Activation& at = written(x);
  const std::size_t head_dim = at.columns / n_heads;
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    for (std::size_t head = 0; head < n_heads; ++head) {
      kernels_.elementwise.rope(turns.row(row), turns.pairs, turns.interleaved,
                                at.data + row * at.columns + head * head_dim);
    }
  });
  return {};
}

Status CpuBackend::activate(ActivationKind kind, Act x) {
  Activation& at = written(x);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    float* values = at.data + row * at.columns;
    kernels_.elementwise.activate[static_cast<std::size_t>(kind)](values, at.columns, values);
  });
  return {};
}

Status CpuBackend::activate_gated(ActivationKind kind, Act gate, Act up) {
  const Activation& gates = act(gate);
  Activation& at = written(up);
  for_each_row(at.columns, [&](std::size_t row, std::byte*) {
    kernels_.elementwise.activate_gated[static_cast<std::size_t>(kind)](
        gates.data + row * at.columns, at.data + row * at.columns, at.columns, at.data + row * at.columns);
  });
  return {};
}

Status CpuBackend::select_rows(std::size_t selection, Act in, Act out) {
  const std::span<const std::uint32_t> rows = selections_[selection];
  const Activation& from = act(in);
  Activation& to = written(out);
  to.columns = from.columns;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(to.data + i * to.columns, from.data + rows[i] * from.columns, to.columns * sizeof(float));
  }
  n_rows_ = rows.size();
  return {};
}

Status CpuBackend::read(Act x, std::uint32_t row, std::span<float> out) {
  if (out.empty()) return {};  // a rank that hands out no results has no `out`
  const Activation& at = act(x);
  std::memcpy(out.data(), at.data + row * at.columns, std::min(out.size(), at.columns) * sizeof(float));
  return {};
}

}  // namespace tessera::cpu
