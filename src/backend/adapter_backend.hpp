// Computes steps in which rows have adapters. A row's adapters are a range of StepTables::adapters; their changes are made in this order,
// behind each product of a matrix that they change. Rows are grouped by adapter, so that each adapter's numbers are read once a product. A
// row's bits do not depend on the adapters of other rows: without adapters they are those of the inner backend.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/joining_backend.hpp"

namespace tessera::backend {

// The changes that an adapter makes, by matrix. Immutable while steps use it.
class AdapterWeights {
 public:
  // Adds the change of a matrix's products, or of a table's rows. May throw bad_alloc.
  void add(const Matrix& weight, std::shared_ptr<const LowRank> change) {
    std::vector<Entry>& to = change->shape().is_table ? tables_ : products_;
    to.insert(std::ranges::upper_bound(to, &weight, {}, &Entry::weight), Entry{&weight, std::move(change)});
  }
  // Adds the same adapter's changes for the weights of the next rank of this process. May throw bad_alloc.
  AdapterWeights& add_rank() { return ranks_.emplace_back(); }
  // Returns the changes for a rank. Precondition: it is 0, or was added.
  [[nodiscard]] const AdapterWeights& of_rank(std::uint32_t rank) const noexcept { return rank == 0 ? *this : ranks_[rank - 1]; }
  // Return the change; nullptr if the adapter makes none.
  [[nodiscard]] const LowRank* of_product(const Matrix& weight) const noexcept { return find(products_, weight); }
  [[nodiscard]] const LowRank* of_table(const Matrix& weight) const noexcept { return find(tables_, weight); }

 private:
  struct Entry {
    const Matrix* weight;
    std::shared_ptr<const LowRank> change;
  };
  [[nodiscard]] static const LowRank* find(const std::vector<Entry>& in, const Matrix& weight) noexcept {
    const auto at = std::ranges::lower_bound(in, &weight, {}, &Entry::weight);
    return at != in.end() && at->weight == &weight ? at->change.get() : nullptr;
  }

  std::vector<Entry> products_, tables_;  // sorted by weight
  std::vector<AdapterWeights> ranks_;     // of the ranks 1, 2, ...
};

class AdapterBackend final : public JoiningBackend {
 public:
  // `inner` must outlive the object, and compute Capability::low_rank.
  explicit AdapterBackend(Backend& inner) noexcept : JoiningBackend(inner) {}

  Status begin(const StepTables& tables) override;
  Status embed(const Matrix& table, float scale, Act x) override;
  Status select_rows(std::size_t first, std::size_t count, Act in, Act out) override;
  Status keep_rows(std::span<const Act> acts) override;

 private:
  // The adapters of a row: a range of adapters_.
  struct Range {
    std::uint32_t first = 0, count = 0;
  };
  // The present rows that have an adapter at one place of their ranges: those whose first adapter it is, or whose second, ...
  struct Group {
    StepAdapter adapter;
    std::uint32_t place = 0;
    std::vector<std::uint32_t> rows;
  };

  [[nodiscard]] bool joins(const Matrix& weight) const noexcept override;
  Status join(const Matrix& weight, Act in, Act out) override;
  Status join_group(std::span<const LinearPart> parts, Act in) override;
  void join_expert(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                   std::span<float> product) noexcept override;

  // Sets the step's present rows, and groups them.
  void set_rows(std::span<const Range> rows);
  void add_terms(const Matrix& weight, Act out);

  std::vector<StepAdapter> adapters_;                // StepTables::adapters
  std::span<const std::uint32_t> wanted_, selected_;  // as in the tables
  std::vector<Range> kept_;                          // the rows of the step, or those that keep_rows() has kept
  std::vector<Range> chosen_;                        // those that select_rows() has chosen
  std::vector<Range> rows_;                          // the present ones
  std::vector<Group> groups_;                        // in the order of their places; the first n_groups_ are in use
  std::size_t n_groups_ = 0;
  std::vector<LowRankTerm> terms_;
};

}  // namespace tessera::backend
