#include "backend/observing_backend.hpp"

#include "core/error.hpp"

namespace tessera::backend {

Result<const Matrix*> ObservingBackend::add_matrix(const MatrixShape& shape, const RowReader& read) {
  TESSERA_TRY(const Matrix* made, ForwardingBackend::add_matrix(shape, read));
  seen_[made] = {.name = {}, .inputs = shape.inputs, .heads = static_cast<std::uint32_t>(shape.count)};
  return made;
}

Status ObservingBackend::begin(const StepTables& tables) {
  n_rows_ = static_cast<std::uint32_t>(tables.rows.size());
  return ForwardingBackend::begin(tables);
}

Status ObservingBackend::select_rows(std::span<const std::uint32_t> rows, Act in, Act out) {
  n_rows_ = static_cast<std::uint32_t>(rows.size());
  return ForwardingBackend::select_rows(rows, in, out);
}

Status ObservingBackend::keep_rows(std::span<const std::uint32_t> rows, std::span<const Act> acts) {
  n_rows_ = static_cast<std::uint32_t>(rows.size());
  return ForwardingBackend::keep_rows(rows, acts);
}

Status ObservingBackend::read_rows(Act in, std::uint64_t columns) {
  rows_.resize(n_rows_ * columns);
  for (std::uint32_t row = 0; row < n_rows_; ++row) {
    TESSERA_TRY_STATUS(read(in, row, std::span(rows_).subspan(row * columns, columns)));
  }
  return {};
}

void ObservingBackend::tell(const Matrix& weight, std::uint32_t matrix, std::span<const float> input) noexcept {
  const Seen& seen = seen_.find(&weight)->second;
  if (!seen.name.empty()) observer_.see(seen.name, matrix, input);
}

Status ObservingBackend::linear(const Matrix& weight, Act in, Act out) {
  const Seen& seen = seen_.at(&weight);
  if (!seen.name.empty()) {
    TESSERA_TRY_STATUS(read_rows(in, seen.inputs));
    for (std::uint32_t row = 0; row < n_rows_; ++row) {
      tell(weight, 0, std::span<const float>(rows_).subspan(row * seen.inputs, seen.inputs));
    }
  }
  return ForwardingBackend::linear(weight, in, out);
}

Status ObservingBackend::head_linear(const Matrix& weight, Act in, Act out) {
  const Seen& seen = seen_.at(&weight);
  if (!seen.name.empty()) {
    TESSERA_TRY_STATUS(read_rows(in, seen.heads * seen.inputs));
    for (std::uint32_t i = 0; i < n_rows_ * seen.heads; ++i) {
      tell(weight, i % seen.heads, std::span<const float>(rows_).subspan(i * seen.inputs, seen.inputs));
    }
  }
  return ForwardingBackend::head_linear(weight, in, out);
}

Status ObservingBackend::experts(const Experts& of, Act in, Act router, Act out) {
  TESSERA_TRY_STATUS(read_rows(in, seen_.at(of.up).inputs));
  Experts observed = of;
  observed.inputs = this;
  experts_ = &observed;
  return ForwardingBackend::experts(observed, in, router, out);
}

void ObservingBackend::see(std::uint32_t expert, std::uint32_t row, std::span<const float> activated) noexcept {
  const std::uint64_t columns = rows_.size() / n_rows_;
  const std::span<const float> input = std::span<const float>(rows_).subspan(row * columns, columns);
  if (experts_->gate != nullptr) tell(*experts_->gate, expert, input);
  tell(*experts_->up, expert, input);
  tell(*experts_->down, expert, activated);
}

}  // namespace tessera::backend
