// The CPU's backend, where an observer sees what matrices multiply. Its fused operations are the plain ones one after
// another, so that every product is a linear() and its input an activation that can be read; their bits are the same. An
// engine without an observer has no such backend, and pays nothing.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/extend/backend/input_observer.hpp>

#include "backend/forwarding_backend.hpp"

namespace tessera::backend {

class ObservingBackend final : public ForwardingBackend, private ExpertInputs {
 public:
  ObservingBackend(std::unique_ptr<Backend> inner, InputObserver& observer)
      : ForwardingBackend(std::move(inner)), observer_(observer) {}

  // What the observer calls a matrix; one that has no name is not seen.
  void name_matrix(const Matrix& weight, std::string_view name) { seen_.at(&weight).name = name; }

  [[nodiscard]] std::string_view name() const noexcept override { return own().name(); }
  [[nodiscard]] bool invariant() const noexcept override { return own().invariant(); }
  [[nodiscard]] bool computes(Part part) const noexcept override { return own().computes(part); }
  [[nodiscard]] bool activates(ActivationKind kind) const noexcept override { return own().activates(kind); }
  Result<const Matrix*> add_matrix(const MatrixShape& shape, const RowReader& read) override;
  Status begin(const StepTables& tables) override;
  Status linear(const Matrix& weight, Act in, Act out) override;
  Status head_linear(const Matrix& weight, Act in, Act out) override;
  Status experts(const Experts& of, Act in, Act router, Act out) override;
  Status select_rows(std::span<const std::uint32_t> rows, Act in, Act out) override;
  Status keep_rows(std::span<const std::uint32_t> rows, std::span<const Act> acts) override;

 private:
  struct Seen {
    std::string name;
    std::uint64_t inputs = 0;
    std::uint32_t heads = 1;  // of head_linear()'s: matrices
  };

  void see(std::uint32_t expert, std::uint32_t row, std::span<const float> activated) noexcept override;
  Status read_rows(Act in, std::uint64_t columns);
  void tell(const Matrix& weight, std::uint32_t matrix, std::span<const float> input) noexcept;

  InputObserver& observer_;
  std::unordered_map<const Matrix*, Seen> seen_;
  std::uint32_t n_rows_ = 0;            // of the step
  std::vector<float> rows_;             // of an activation  [n_rows_, columns]
  const Experts* experts_ = nullptr;    // that are being computed
};

}  // namespace tessera::backend
