// A backend that shows the inputs of matrices to an observer of the host, which computes importance matrices, for example. JoiningBackend
// calls join() after each product of a matrix. Here join() shows the product's input to the observer and adds nothing, so the bits stay
// the same. An engine without an observer has no ObservingBackend, and pays nothing.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/extend/backend/input_observer.hpp>

#include "backend/joining_backend.hpp"

namespace tessera::backend {

class ObservingBackend final : public JoiningBackend {
 public:
  ObservingBackend(std::unique_ptr<Backend> inner, InputObserver& observer)
      : JoiningBackend(std::move(inner)), observer_(observer) {}

  // Gives the matrix the name by which the observer knows it. A matrix without a name is not shown.
  void name_matrix(const Matrix& weight, std::string_view name) { seen_.at(&weight).name = name; }

  Result<const Matrix*> add_matrix(const MatrixShape& shape, const RowReader& read) override;
  Status begin(const StepTables& tables) override;
  Status select_rows(std::size_t selection, Act in, Act out) override;
  Status keep_rows(std::span<const Act> acts) override;

 private:
  struct Seen {
    std::string name;
    std::uint64_t inputs = 0;
    std::uint32_t heads = 1;  // matrices in one: heads of head_linear(), or experts
  };

  [[nodiscard]] bool joins(const Matrix& weight) const noexcept override { return !seen_.find(&weight)->second.name.empty(); }
  Status join(const Matrix& weight, Act in, Act out) override;
  void join_expert(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                   std::span<float> product) noexcept override;

  InputObserver& observer_;
  std::unordered_map<const Matrix*, Seen> seen_;
  std::size_t n_rows_ = 0, n_wanted_ = 0;  // rows of the step, now and after keep_rows()
  std::span<const std::span<const std::uint32_t>> selections_;  // StepTables::selections
  std::vector<float> row_;  // one row of an activation
};

}  // namespace tessera::backend
