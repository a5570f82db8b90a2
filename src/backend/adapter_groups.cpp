#include "backend/adapter_groups.hpp"

#include <algorithm>

#include "backend/adapter_weights.hpp"

namespace tessera::backend {

void AdapterGroups::make(const StepTables& tables) {
  adapters_.assign(tables.adapters.begin(), tables.adapters.end());
  ranges_.clear();
  groups_.clear();
  sets_.clear();
  present_ = 0;
  add_set(tables.rows, tables.rows.size(), [](std::size_t i) { return i; });
  if (tables.wanted.size() == tables.rows.size()) {
    sets_.push_back(sets_.front());
  } else {
    add_set(tables.rows, tables.wanted.size(), [&](std::size_t i) { return tables.wanted[i]; });
  }
  for (const std::span<const std::uint32_t> list : tables.selections) {
    add_set(tables.rows, list.size(), [&](std::size_t i) { return tables.wanted[list[i]]; });
  }
  changes_.clear();
  for (const Group& group : groups_) changes_.push_back({.rows = lists_[group.rows], .numbers = group.adapter.weights->most_numbers()});
}

// Adds the set of n_rows rows whose row i is rows[row_of(i)].
template <class RowOf>
void AdapterGroups::add_set(std::span<const RowTable> rows, std::size_t n_rows, RowOf row_of) {
  Set set{.first_group = groups_.size(), .n_groups = 0, .first_row = ranges_.size(), .n_rows = n_rows};
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < n_rows; ++i) {
    const RowTable& row = rows[row_of(i)];
    ranges_.push_back({row.first_adapter, row.n_adapters});
    most = std::max(most, row.n_adapters);
  }
  for (std::uint32_t place = 0; place < most; ++place) add_groups(set, place);
  sets_.push_back(set);
}

// Adds the groups of one place: takes adapter number `place` of each row's range, and adds a group for each different adapter.
void AdapterGroups::add_groups(Set& set, std::uint32_t place) {
  const std::size_t first = groups_.size();
  for (std::uint32_t row = 0; row < set.n_rows; ++row) {
    const Range& range = ranges_[set.first_row + row];
    if (range.count <= place) continue;
    const StepAdapter& adapter = adapters_[range.first + place];
    const auto same = [&](const Group& group) { return group.adapter.weights == adapter.weights && group.adapter.scale == adapter.scale; };
    const auto known = std::find_if(groups_.begin() + static_cast<std::ptrdiff_t>(first), groups_.end(), same);
    (known != groups_.end() ? lists_[known->rows] : add_group(adapter)).push_back(row);
  }
  set.n_groups += groups_.size() - first;
}

// Adds a group without rows, and returns its list of rows.
std::vector<std::uint32_t>& AdapterGroups::add_group(const StepAdapter& adapter) {
  const std::size_t at = groups_.size();
  groups_.push_back({.adapter = adapter, .rows = static_cast<std::uint32_t>(at)});
  if (at == lists_.size()) lists_.emplace_back();
  lists_[at].clear();
  return lists_[at];
}

}  // namespace tessera::backend
