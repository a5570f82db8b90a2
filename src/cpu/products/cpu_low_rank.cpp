// The changes that adapters make to products and tables, on the CPU: add_low_rank() and similar functions of CpuBackend. For matrices A
// and B of a change (backend/low_rank.hpp), and each row x, first all t = scale * A x are computed, then all out = factors * (out + B t),
// where `out` has the product W x. (Without lengths, factors are 1.) Each of the two is one piece of parallel work for all terms.
#include <algorithm>
#include <cstring>

#include "core/float16.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/products/low_rank.hpp"

namespace tessera::cpu {

namespace {

constexpr std::size_t kRowsOfTask = 32, kRanksOfTask = 32;
constexpr std::size_t kPanelsOfTask = 8;
static_assert(kRanksOfTask % kLowRankBlock == 0);

const CpuLowRank& change_of(const backend::LowRankTerm& term) noexcept { return static_cast<const CpuLowRank&>(*term.change); }

float scale_of(const backend::LowRankTerm& term) noexcept { return term.scale * term.change->shape().scale; }

float number_at(const std::byte* at, LowRankType type) noexcept {
  if (type == LowRankType::f32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return type == LowRankType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

}  // namespace

std::uint64_t CpuBackend::low_rank_bytes(const backend::LowRankShape& shape) const noexcept { return CpuLowRank::bytes_of(shape); }

Result<std::shared_ptr<const backend::LowRank>> CpuBackend::hold_low_rank(const backend::LowRankShape& shape,
                                                                         const backend::LowRankValues& values) const {
  TESSERA_TRY(std::shared_ptr<const backend::LowRank> made, CpuLowRank::make(memory_, shape, values));
  return made;
}

// Sets t_at: where in t the numbers of each term begin. The numbers of a term are [matrix][row][rank]. Makes t larger if it is too small.
void CpuBackend::LowRankWork::place(std::span<const backend::LowRankTerm> terms, std::span<const backend::ChangedRows> changes) {
  t_at.clear();
  std::size_t at = 0;
  for (const backend::LowRankTerm& term : terms) {
    t_at.push_back(at);
    at += term.change->shape().count * changes[term.rows].rows.size() * term.change->shape().rank;
  }
  if (t.size() < at) t.resize(at);
}

Status CpuBackend::add_low_rank(std::span<const backend::LowRankTerm> terms, Act in) {
  LowRankWork& work = low_rank_;
  work.place(terms, changes_);
  work.downs.clear();
  const Activation& from = act(in);
  for (std::uint32_t i = 0; i < terms.size(); ++i) {
    const backend::LowRankShape& shape = terms[i].change->shape();
    const std::size_t n_rows = rows_of(terms[i]).size();
    for (std::uint32_t matrix = 0; matrix < shape.count; ++matrix) {
      for (std::size_t row = 0; row < n_rows; row += kRowsOfTask) {
        for (std::size_t rank = 0; rank < shape.rank; rank += kRanksOfTask) {
          work.downs.push_back({i, matrix, row, rank});
        }
      }
    }
  }
  for_each(work.downs.size(), 1, [&](std::size_t i, std::byte*) {
    const LowRankWork::Down& task = work.downs[i];
    const backend::LowRankTerm& term = terms[task.term];
    const backend::LowRankShape& shape = term.change->shape();
    const CpuLowRank& change = change_of(term);
    const std::span<const std::uint32_t> rows = rows_of(term);
    kernels_.low_rank.down[static_cast<std::size_t>(change.type())](
        {.a = change.a(task.matrix) + task.rank / kLowRankBlock * change.block_bytes(),
         .block_bytes = change.block_bytes(),
         .ranks = std::min<std::size_t>(kRanksOfTask, shape.rank - task.rank),
         .inputs = shape.inputs,
         .x = from.data + task.matrix * shape.inputs,
         .x_stride = from.columns,
         .rows = rows.data() + task.row,
         .n_rows = std::min<std::size_t>(kRowsOfTask, rows.size() - task.row),
         .scale = scale_of(term),
         .t = work.t.data() + work.t_at[task.term] + (task.matrix * rows.size() + task.row) * shape.rank + task.rank,
         .t_stride = shape.rank});
  });
  return add_changes(terms);
}

Status CpuBackend::add_low_rank_of_tokens(std::span<const backend::LowRankTerm> terms, float factor) {
  LowRankWork& work = low_rank_;
  work.place(terms, changes_);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const CpuLowRank& change = change_of(terms[i]);
    const std::size_t rank = change.shape().rank, size = change.type() == LowRankType::f32 ? 4 : 2;
    float* t = work.t.data() + work.t_at[i];
    for (const std::uint32_t row : rows_of(terms[i])) {
      const backend::RowTable& table = rows_[row];
      const float scale = table.embedding != nullptr ? 0.0f : factor * scale_of(terms[i]);
      const std::byte* a = change.a(static_cast<std::uint64_t>(table.token));
      for (std::size_t r = 0; r < rank; ++r) t[r] = scale == 0.0f ? 0.0f : scale * number_at(a + r * size, change.type());
      t += rank;
    }
  }
  return add_changes(terms);
}

// Adds B t to the outputs of all terms. A task has some panels of outputs, and computes all terms that change the same activation, one
// after another. So the changes of a row are added in the order of the terms, whatever the threads do.
Status CpuBackend::add_changes(std::span<const backend::LowRankTerm> terms) {
  LowRankWork& work = low_rank_;
  work.ups.clear();
  for (std::uint32_t first = 0; first < terms.size();) {
    std::uint32_t last = first;
    while (last < terms.size() && terms[last].out == terms[first].out) ++last;
    (void)written(terms[first].out);
    const std::size_t panels = change_of(terms[first]).panels();
    for (std::uint32_t matrix = 0; matrix < terms[first].change->shape().count; ++matrix) {
      for (std::size_t panel = 0; panel < panels; panel += kPanelsOfTask) work.ups.push_back({first, last, matrix, panel});
    }
    first = last;
  }
  for_each(work.ups.size(), 1, [&](std::size_t i, std::byte*) {
    const LowRankWork::Up& task = work.ups[i];
    const Activation& out = act(terms[task.first].out);
    const std::size_t output = task.panel * kLowRankPanel;
    float factors[kPanelsOfTask * kLowRankPanel];
    for (std::uint32_t at = task.first; at < task.last; ++at) {
      const backend::LowRankTerm& term = terms[at];
      const backend::LowRankShape& shape = term.change->shape();
      const CpuLowRank& change = change_of(term);
      const std::span<const std::uint32_t> rows = rows_of(term);
      const std::size_t outputs = std::min<std::size_t>(kPanelsOfTask * kLowRankPanel, shape.outputs - output);
      if (shape.has_lengths) change.factors(task.matrix, output, outputs, static_cast<double>(scale_of(term)), factors);
      kernels_.low_rank.up[static_cast<std::size_t>(change.type())](
          {.b = change.panel(task.matrix, task.panel),
           .rank = shape.rank,
           .outputs = outputs,
           .t = work.t.data() + work.t_at[at] + task.matrix * rows.size() * shape.rank,
           .t_stride = shape.rank,
           .rows = rows.data(),
           .n_rows = rows.size(),
           .factors = shape.has_lengths ? factors : nullptr,
           .out = out.data + task.matrix * shape.outputs + output,
           .out_stride = out.columns});
    }
  });
  return {};
}

void CpuBackend::change_product(const backend::LowRank& change, float scale, std::uint32_t index, std::span<const float> in,
                                std::span<float> product) noexcept {
  const backend::LowRankTerm term{.change = &change, .scale = scale, .out = Act::count};
  const backend::LowRankShape& shape = change.shape();
  const CpuLowRank& of = change_of(term);
  const auto type = static_cast<std::size_t>(of.type());
  const std::uint32_t row = 0;
  float t[backend::kMaxLowRank], factors[kLowRankPanel];
  kernels_.low_rank.down[type]({.a = of.a(index), .block_bytes = of.block_bytes(), .ranks = shape.rank, .inputs = shape.inputs, .x = in.data(),
                                .rows = &row, .n_rows = 1, .scale = scale_of(term), .t = t, .t_stride = shape.rank});
  for (std::size_t panel = 0; panel < of.panels(); ++panel) {
    const std::size_t output = panel * kLowRankPanel, outputs = std::min<std::size_t>(kLowRankPanel, shape.outputs - output);
    if (shape.has_lengths) of.factors(index, output, outputs, static_cast<double>(scale_of(term)), factors);
    kernels_.low_rank.up[type]({.b = of.panel(index, panel), .rank = shape.rank, .outputs = outputs, .t = t, .t_stride = shape.rank,
                                .rows = &row, .n_rows = 1, .factors = shape.has_lengths ? factors : nullptr,
                                .out = product.data() + output});
  }
}

}  // namespace tessera::cpu
