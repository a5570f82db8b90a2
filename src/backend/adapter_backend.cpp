#include "backend/adapter_backend.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tessera::backend {

Status AdapterBackend::begin(const StepTables& tables) {
  groups_.make(tables);
  StepTables with = tables;
  with.changes = groups_.changes();
  return inner().begin(with);
}

Status AdapterBackend::keep_rows(std::span<const Act> acts) {
  groups_.keep();
  return inner().keep_rows(acts);
}

Status AdapterBackend::select_rows(std::size_t selection, Act in, Act out) {
  groups_.select(selection);
  return inner().select_rows(selection, in, out);
}

bool AdapterBackend::joins(const Matrix& weight) const noexcept {
  return std::ranges::any_of(groups_.present(),
                             [&](const AdapterGroups::Group& group) { return group.adapter.weights->of_product(weight) != nullptr; });
}

template <class ChangeOf>
void AdapterBackend::add_terms(Act out, ChangeOf change_of) {
  for (const AdapterGroups::Group& group : groups_.present()) {
    const LowRank* const change = change_of(*group.adapter.weights);
    if (change != nullptr) terms_.push_back({.change = change, .scale = group.adapter.scale, .rows = group.rows, .out = out});
  }
}

Status AdapterBackend::join(const Matrix& weight, Act in, Act out) {
  terms_.clear();
  add_terms(out, [&](const AdapterWeights& weights) { return weights.of_product(weight); });
  return inner().add_low_rank(terms_, in);
}

Status AdapterBackend::join_group(std::span<const LinearPart> parts, Act in) {
  terms_.clear();
  for (const LinearPart& part : parts) {
    add_terms(part.out, [&](const AdapterWeights& weights) { return weights.of_product(*part.weight); });
  }
  return inner().add_low_rank(terms_, in);
}

void AdapterBackend::join_expert(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                                 std::span<float> product) noexcept {
  for (const StepAdapter& adapter : groups_.adapters_of(row)) {
    const LowRank* const change = adapter.weights->of_product(weight);
    if (change != nullptr) inner().change_product(*change, adapter.scale, expert, in, product);
  }
}

Status AdapterBackend::embed(const Matrix& table, float scale, Act x) {
  TESSERA_TRY_STATUS(inner().embed(table, scale, x));
  terms_.clear();
  add_terms(x, [&](const AdapterWeights& weights) { return weights.of_table(table); });
  return terms_.empty() ? Status() : inner().add_low_rank_of_tokens(terms_, scale);
}

}  // namespace tessera::backend
