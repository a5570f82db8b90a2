// The step that begin() has announced: its tables, and which of its rows are present. Says of every row, list, shape and draw that an
// operation names whether begin() was given it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/adapter_weights.hpp"
#include "backend/backend.hpp"

namespace tessera::test {

class AnnouncedStep {
 public:
  explicit AnnouncedStep(std::set<std::string>& complaints) : complaints_(complaints) {}

  void begin(const backend::StepTables& tables) {
    expect(!under_way_, "begin: the step before has not ended");
    tables_ = tables;
    under_way_ = true;
    kept_ = selected_ = false;
    present_.clear();
    for (std::uint32_t row = 0; row < tables.rows.size(); ++row) present_.push_back(row);
    check_rows();
    check_lists();
  }
  void end() {
    expect(under_way_, "end: no step has begun");
    under_way_ = false;
  }
  [[nodiscard]] bool under_way() const { return under_way_; }
  // The number of rows that operations work on.
  [[nodiscard]] std::size_t rows() const { return present_.size(); }

  void check_operation(std::string_view operation) { expect(under_way_, std::string(operation) + " outside of a step"); }
  void check_outside(std::string_view operation) { expect(!under_way_, std::string(operation) + " within a step"); }
  void check_row(std::string_view operation, std::size_t row) {
    expect(row < present_.size(), std::string(operation) + " names a row that is not present");
  }
  [[nodiscard]] bool check_rope(std::string_view operation, std::uint32_t table) {
    return expect(table == kNoRope || table < tables_.ropes.size(), std::string(operation) + " by a rope that begin() did not name");
  }
  void check_attention(backend::AttentionShape shape) {
    expect(!shape.counts_votes || (!tables_.votes.empty() && !kept_), "attention counts votes, and no row votes");
    shape.counts_votes = false;
    expect(std::ranges::find(tables_.attentions, shape) != tables_.attentions.end(), "attention of a shape that begin() did not name");
  }
  [[nodiscard]] bool check_draws(std::size_t first, std::size_t count) {
    const bool known = first <= tables_.draws.size() && count <= tables_.draws.size() - first;
    if (!expect(known, "sample draws what begin() did not name")) return false;
    for (const backend::SampleRow& draw : tables_.draws.subspan(first, count)) check_row("sample", draw.row);
    return true;
  }
  [[nodiscard]] bool check_tokens(std::span<const Token> tokens) {
    return expect(under_way_ && tokens.size() == tables_.rows.size() && !kept_ && !selected_, "set_tokens: other rows than those of the step");
  }

  // Returns whether rows can be dropped, and makes the wanted rows the present ones.
  [[nodiscard]] bool keep() {
    if (!expect(!kept_ && !selected_, "keep_rows: the rows of the step have been dropped already")) return false;
    kept_ = true;
    present_.assign(tables_.wanted.begin(), tables_.wanted.end());
    return true;
  }
  // Returns whether there is such a selection, and makes its rows the present ones.
  [[nodiscard]] bool select(std::size_t selection) {
    expect(kept_ || tables_.wanted.size() == tables_.rows.size(), "select_rows before keep_rows() in a step that drops rows");
    if (!expect(selection < tables_.selections.size(), "select_rows selects rows that begin() did not name")) return false;
    selected_ = true;
    present_.clear();
    for (const std::uint32_t at : tables_.selections[selection]) present_.push_back(tables_.wanted[at]);
    return true;
  }

  // Checks a term of add_low_rank(): its list is one of begin()'s, the list's rows are present, and each of them has an adapter of that
  // scale. Returns whether the backend can compute it.
  [[nodiscard]] bool check_term(std::string_view operation, const backend::LowRankTerm& term) {
    const std::string name(operation);
    if (!expect(term.rows < tables_.changes.size(), name + " names a list of rows that begin() did not name")) return false;
    const backend::ChangedRows& list = tables_.changes[term.rows];
    const backend::LowRankShape& shape = term.change->shape();
    expect(shape.count * shape.rank <= list.numbers, name + " makes a larger change than begin() was told");
    for (const std::uint32_t at : list.rows) {
      if (!expect(at < present_.size(), name + " names a row that is not present")) return false;
      expect(has_adapter(present_[at], term.scale), name + " changes a row that has no such adapter");
    }
    return true;
  }

 private:
  bool expect(bool ok, std::string_view complaint) {
    if (!ok) complaints_.emplace(complaint);
    return ok;
  }
  [[nodiscard]] std::span<const backend::StepAdapter> adapters_of(const backend::RowTable& row) const {
    return tables_.adapters.subspan(row.first_adapter, row.n_adapters);
  }
  [[nodiscard]] bool has_adapter(std::uint32_t row, float scale) const {
    return std::ranges::any_of(adapters_of(tables_.rows[row]), [&](const backend::StepAdapter& adapter) { return adapter.scale == scale; });
  }
  static bool ascends(std::span<const std::uint32_t> list, std::size_t end) {
    return std::ranges::adjacent_find(list, std::greater_equal<>()) == list.end() && (list.empty() || list.back() < end);
  }

  void check_rows() {
    for (const backend::RowTable& row : tables_.rows) {
      const std::size_t sequences = tables_.sequences.size();
      expect(row.sequence < sequences && row.n_also <= sequences && row.also <= sequences - row.n_also + (row.n_also == 0 ? 1 : 0),
             "begin: a row of a sequence that is not there");
      const std::size_t adapters = tables_.adapters.size();
      expect(row.first_adapter <= adapters && row.n_adapters <= adapters - row.first_adapter, "begin: a row with an adapter that is not there");
    }
    for (const backend::RowVotes& voter : tables_.votes) {
      expect(voter.row < tables_.rows.size() && voter.of_keys.size() > tables_.rows[voter.row].position, "begin: a voter without a row or room");
    }
  }
  void check_lists() {
    expect(ascends(tables_.wanted, tables_.rows.size()), "begin: wanted rows are not rows of the step, ascending");
    for (const auto& list : tables_.selections) {
      expect(ascends(list, tables_.wanted.size()), "begin: selected rows are not wanted rows, ascending");
    }
    for (const backend::ChangedRows& list : tables_.changes) {
      expect(ascends(list.rows, tables_.rows.size()), "begin: changed rows are not rows of the step, ascending");
    }
  }

  std::set<std::string>& complaints_;
  backend::StepTables tables_;
  bool under_way_ = false, kept_ = false, selected_ = false;
  std::vector<std::uint32_t> present_;  // the rows of the step that operations work on
};

}  // namespace tessera::test
