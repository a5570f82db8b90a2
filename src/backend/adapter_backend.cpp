#include "backend/adapter_backend.hpp"

#include "core/error.hpp"

namespace tessera::backend {

Status AdapterBackend::begin(const StepTables& tables) {
  adapters_.assign(tables.adapters.begin(), tables.adapters.end());
  wanted_ = tables.wanted;
  selected_ = tables.selected;
  kept_.clear();
  for (const RowTable& row : tables.rows) kept_.push_back({row.first_adapter, row.n_adapters});
  set_rows(kept_);
  return inner().begin(tables);
}

Status AdapterBackend::keep_rows(std::span<const Act> acts) {
  for (std::size_t i = 0; i < wanted_.size(); ++i) kept_[i] = kept_[wanted_[i]];  // ascending, so no row is needed after it is replaced
  kept_.resize(wanted_.size());
  set_rows(kept_);
  return inner().keep_rows(acts);
}

Status AdapterBackend::select_rows(std::size_t first, std::size_t count, Act in, Act out) {
  chosen_.clear();
  for (const std::uint32_t row : selected_.subspan(first, count)) chosen_.push_back(kept_[row]);
  set_rows(chosen_);
  return inner().select_rows(first, count, in, out);
}

void AdapterBackend::set_rows(std::span<const Range> rows) {
  rows_.assign(rows.begin(), rows.end());
  n_groups_ = 0;
  std::uint32_t most = 0;
  for (const Range& row : rows_) most = std::max(most, row.count);
  for (std::uint32_t place = 0; place < most; ++place) {
    const std::size_t first = n_groups_;
    for (std::uint32_t row = 0; row < rows_.size(); ++row) {
      if (rows_[row].count <= place) continue;
      const StepAdapter& adapter = adapters_[rows_[row].first + place];
      std::size_t at = first;
      while (at < n_groups_ && (groups_[at].adapter.weights != adapter.weights || groups_[at].adapter.scale != adapter.scale)) ++at;
      if (at == n_groups_) {
        if (at == groups_.size()) groups_.emplace_back();
        groups_[at].adapter = adapter;
        groups_[at].place = place;
        groups_[at].rows.clear();
        ++n_groups_;
      }
      groups_[at].rows.push_back(row);
    }
  }
}

bool AdapterBackend::joins(const Matrix& weight) const noexcept {
  return std::ranges::any_of(std::span(groups_).first(n_groups_),
                             [&](const Group& group) { return group.adapter.weights->of_product(weight) != nullptr; });
}

void AdapterBackend::add_terms(const Matrix& weight, Act out) {
  for (const Group& group : std::span(groups_).first(n_groups_)) {
    const LowRank* const change = group.adapter.weights->of_product(weight);
    if (change != nullptr) terms_.push_back({.change = change, .scale = group.adapter.scale, .rows = group.rows, .out = out});
  }
}

Status AdapterBackend::join(const Matrix& weight, Act in, Act out) {
  terms_.clear();
  add_terms(weight, out);
  return inner().add_low_rank(terms_, in);
}

Status AdapterBackend::join_group(std::span<const LinearPart> parts, Act in) {
  terms_.clear();
  for (const LinearPart& part : parts) add_terms(*part.weight, part.out);
  return inner().add_low_rank(terms_, in);
}

void AdapterBackend::join_expert(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                                 std::span<float> product) noexcept {
  for (const StepAdapter& adapter : std::span(adapters_).subspan(rows_[row].first, rows_[row].count)) {
    const LowRank* const change = adapter.weights->of_product(weight);
    if (change != nullptr) inner().change_product(*change, adapter.scale, expert, in, product);
  }
}

Status AdapterBackend::embed(const Matrix& table, float scale, Act x) {
  TESSERA_TRY_STATUS(inner().embed(table, scale, x));
  terms_.clear();
  for (const Group& group : std::span(groups_).first(n_groups_)) {
    const LowRank* const change = group.adapter.weights->of_table(table);
    if (change != nullptr) terms_.push_back({.change = change, .scale = group.adapter.scale, .rows = group.rows, .out = x});
  }
  return terms_.empty() ? Status() : inner().add_low_rank_of_tokens(terms_, scale);
}

}  // namespace tessera::backend
