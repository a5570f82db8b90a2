// The changes that an adapter makes, as a backend holds them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/low_rank.hpp"

namespace tessera::backend {

struct Matrix;

// The changes that an adapter makes, by matrix. Immutable while steps use it.
class AdapterWeights {
 public:
  // Adds the change of a matrix's products, or of a table's rows. May throw bad_alloc.
  void add(const Matrix& weight, std::shared_ptr<const LowRank> change) {
    most_numbers_ = std::max(most_numbers_, change->shape().count * change->shape().rank);
    std::vector<Entry>& to = change->shape().is_table ? tables_ : products_;
    to.insert(std::ranges::upper_bound(to, &weight, {}, &Entry::weight), Entry{&weight, std::move(change)});
  }
  // Adds the same adapter's changes for the weights of the next rank of this process. May throw bad_alloc.
  AdapterWeights& add_rank() { return ranks_.emplace_back(); }
  // Returns the changes for a rank. Precondition: `rank` is 0, or add_rank() has added it.
  [[nodiscard]] const AdapterWeights& of_rank(std::uint32_t rank) const noexcept { return rank == 0 ? *this : ranks_[rank - 1]; }
  // Return the change that the adapter makes: of_product() to products of the matrix `weight`, of_table() to the rows that are looked up
  // in the table `weight` (token embeddings). nullptr: the adapter does not change it.
  [[nodiscard]] const LowRank* of_product(const Matrix& weight) const noexcept { return find(products_, weight); }
  [[nodiscard]] const LowRank* of_table(const Matrix& weight) const noexcept { return find(tables_, weight); }
  // Returns the largest number of elements that A x has for one row, over all changes (ChangedRows::numbers).
  [[nodiscard]] std::uint64_t most_numbers() const noexcept { return most_numbers_; }

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
  std::vector<AdapterWeights> ranks_;     // changes for ranks 1, 2, ...
  std::uint64_t most_numbers_ = 0;
};

}  // namespace tessera::backend
