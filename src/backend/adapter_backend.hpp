// A backend around another one (the inner backend) that computes steps in which rows have adapters (LoRA). A row's adapters are a range
// of StepTables::adapters. After each product of a matrix, the changes that the row's adapters make to this matrix are added to the row's
// product, in the order of the range. Rows are grouped by adapter, so that a product reads each adapter's numbers once. A row's bits do
// not depend on the adapters of other rows. A row without adapters has the bits that the inner backend alone computes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/adapter_groups.hpp"
#include "backend/adapter_weights.hpp"
#include "backend/joining_backend.hpp"

namespace tessera::backend {

class AdapterBackend final : public JoiningBackend {
 public:
  // `inner` must outlive the object, and compute Capability::low_rank.
  explicit AdapterBackend(Backend& inner) noexcept : JoiningBackend(inner) {}

  Status begin(const StepTables& tables) override;
  Status embed(const Matrix& table, float scale, Act x) override;
  Status select_rows(std::size_t selection, Act in, Act out) override;
  Status keep_rows(std::span<const Act> acts) override;

 private:
  [[nodiscard]] bool joins(const Matrix& weight) const noexcept override;
  Status join(const Matrix& weight, Act in, Act out) override;
  Status join_group(std::span<const LinearPart> parts, Act in) override;
  void join_expert(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                   std::span<float> product) noexcept override;

  // Adds a term to terms_ for each group of present rows whose adapter makes a change. change_of(weights) returns the change.
  template <class ChangeOf>
  void add_terms(Act out, ChangeOf change_of);

  AdapterGroups groups_;
  std::vector<LowRankTerm> terms_;
};

}  // namespace tessera::backend
