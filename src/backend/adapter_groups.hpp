// The rows of a step, grouped by adapter, so that AdapterBackend adds an adapter's change to all its rows at once. During a step the rows
// that operations work on (the present rows) become fewer: first all rows, then the rows that keep_rows() keeps, then the rows of a
// selection. Each of these sets has groups of its own. All groups follow from the step's tables, so AdapterBackend makes them in begin()
// and hands their lists of rows to the inner backend (StepTables::changes).
//
// Example: rows 0 and 2 have adapter a, row 1 has adapter a and then adapter b. The groups are {a: rows 0, 1, 2} and {b: row 1}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"

namespace tessera::backend {

class AdapterGroups {
 public:
  // The rows of a set that have the same adapter at the same place of their ranges, for example as their first or as their second adapter.
  struct Group {
    StepAdapter adapter;
    std::uint32_t rows = 0;  // index into changes()
  };

  // Groups the rows of a step that begins. Afterwards all rows are the present rows. May throw bad_alloc.
  void make(const StepTables& tables);
  // Returns the lists of rows of all groups, for StepTables::changes. They live until the next make().
  [[nodiscard]] std::span<const ChangedRows> changes() const noexcept { return changes_; }

  // Make the kept rows, or the rows of a selection, the present rows.
  void keep() noexcept { present_ = kKept; }
  void select(std::size_t selection) noexcept { present_ = kKept + 1 + selection; }

  // Returns the groups of the present rows, in the order in which a row's adapters change its products.
  [[nodiscard]] std::span<const Group> present() const noexcept {
    return std::span(groups_).subspan(sets_[present_].first_group, sets_[present_].n_groups);
  }
  // Returns the adapters of a present row.
  [[nodiscard]] std::span<const StepAdapter> adapters_of(std::uint32_t row) const noexcept {
    const Range& range = ranges_[sets_[present_].first_row + row];
    return std::span(adapters_).subspan(range.first, range.count);
  }

 private:
  // The adapters of a row: a range of adapters_.
  struct Range {
    std::uint32_t first = 0, count = 0;
  };
  // A set of rows: ranges of groups_ and of ranges_.
  struct Set {
    std::size_t first_group = 0, n_groups = 0;
    std::size_t first_row = 0, n_rows = 0;
  };
  static constexpr std::size_t kKept = 1;  // index into sets_: all rows come first, then the kept rows, then the selections

  template <class RowOf>
  void add_set(std::span<const RowTable> rows, std::size_t n_rows, RowOf row_of);
  void add_groups(Set& set, std::uint32_t place);
  std::vector<std::uint32_t>& add_group(const StepAdapter& adapter);

  std::vector<StepAdapter> adapters_;  // StepTables::adapters
  std::vector<Range> ranges_;          // ranges of the rows of all sets, one set after another
  std::vector<Group> groups_;          // groups of all sets
  std::vector<std::vector<std::uint32_t>> lists_;  // [groups_]: the groups' rows. Further lists keep their memory for other steps
  std::vector<ChangedRows> changes_;   // the lists in the form of StepTables::changes
  std::vector<Set> sets_;
  std::size_t present_ = 0;            // index into sets_: the present rows
};

}  // namespace tessera::backend
