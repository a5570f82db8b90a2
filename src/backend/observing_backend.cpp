#include "backend/observing_backend.hpp"

#include "core/error.hpp"

namespace tessera::backend {

Result<const Matrix*> ObservingBackend::add_matrix(const MatrixShape& shape, const RowReader& read) {
  TESSERA_TRY(const Matrix* made, ForwardingBackend::add_matrix(shape, read));
  seen_[made] = {.name = {}, .inputs = shape.inputs, .heads = static_cast<std::uint32_t>(shape.count)};
  return made;
}

Status ObservingBackend::begin(const StepTables& tables) {
  n_rows_ = tables.rows.size();
  n_wanted_ = tables.wanted.size();
  selections_ = tables.selections;
  return ForwardingBackend::begin(tables);
}

Status ObservingBackend::select_rows(std::size_t selection, Act in, Act out) {
  n_rows_ = selections_[selection].size();
  return ForwardingBackend::select_rows(selection, in, out);
}

Status ObservingBackend::keep_rows(std::span<const Act> acts) {
  n_rows_ = n_wanted_;
  return ForwardingBackend::keep_rows(acts);
}

// Shows each row of the matrix's inputs to the observer. If `weight` consists of several matrices (head_linear()), a row has the inputs
// of all of them, one after another; each is shown with the index of its matrix.
Status ObservingBackend::join(const Matrix& weight, Act in, Act) {
  const Seen& seen = seen_.find(&weight)->second;
  row_.resize(seen.heads * seen.inputs);
  for (std::uint32_t row = 0; row < n_rows_; ++row) {
    TESSERA_TRY_STATUS(read(in, row, row_));
    for (std::uint32_t head = 0; head < seen.heads; ++head) {
      observer_.see(seen.name, head, std::span<const float>(row_).subspan(head * seen.inputs, seen.inputs));
    }
  }
  return {};
}

void ObservingBackend::join_expert(const Matrix& weight, std::uint32_t expert, std::uint32_t, std::span<const float> in,
                                   std::span<float>) noexcept {
  observer_.see(seen_.find(&weight)->second.name, expert, in);
}

}  // namespace tessera::backend
