// A backend as a device's is, whose KV pages the processor cannot address: the CPU's, given the pages' own addresses
// for the length of a step. An engine of it computes what the CPU's computes, and everything that the library does with the
// keys and values besides goes through Memory's transfers.
#pragma once

#include <memory>
#include <vector>

#include "engine/kv_setup.hpp"
#include "engine/models.hpp"
#include "engine/states.hpp"
#include "hidden_memory.hpp"

namespace tessera::test {

using tests::HiddenMemory;

class HiddenBackend final : public backend::Backend {
 public:
  using Act = backend::Act;
  using Matrix = backend::Matrix;
  using Vector = backend::Vector;

  HiddenBackend(std::unique_ptr<Backend> inner, HiddenMemory& memory) : inner_(std::move(inner)), memory_(memory) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "hidden"; }
  [[nodiscard]] std::vector<backend::Explanation> explain() const override { return inner_->explain(); }
  [[nodiscard]] std::shared_ptr<Memory> kv_memory() const noexcept override { return {std::shared_ptr<void>(), &memory_}; }

  [[nodiscard]] std::uint64_t matrix_bytes(const backend::MatrixShape& s) const noexcept override {
    return inner_->matrix_bytes(s);
  }
  [[nodiscard]] std::uint64_t vector_bytes(std::uint64_t n) const noexcept override { return inner_->vector_bytes(n); }
  [[nodiscard]] std::uint64_t staging_bytes(const backend::MatrixShape& s) const noexcept override {
    return inner_->staging_bytes(s);
  }
  [[nodiscard]] std::uint64_t workspace_bytes(const backend::WorkspaceShape& s) const noexcept override {
    return inner_->workspace_bytes(s);
  }
  Status reserve_weights(std::uint64_t bytes, std::uint64_t staging) override {
    return inner_->reserve_weights(bytes, staging);
  }
  Status reserve_workspace(const backend::WorkspaceShape& shape) override { return inner_->reserve_workspace(shape); }
  Result<const Matrix*> add_matrix(const backend::MatrixShape& shape, const backend::RowReader& read) override {
    return inner_->add_matrix(shape, read);
  }
  Result<const Vector*> add_vector(std::span<const float> values) override { return inner_->add_vector(values); }
  void finish_loading() noexcept override { inner_->finish_loading(); }

  // As many pages as the tokens that are looked at need.
  Status move_tokens(const KvView& kv, const backend::KvMove& move, const backend::RopeTable& rope) override {
    Pages pages;
    return inner_->move_tokens(revealed(kv, move.from + move.count, pages), move, rope);
  }
  Status begin(const backend::StepTables& tables) override {
    std::vector<std::uint64_t> lengths(tables.sequences.size());
    for (const backend::RowTable& row : tables.rows) {
      lengths[row.sequence] = std::max(lengths[row.sequence], row.position + 1);
    }
    pages_.assign(lengths.size(), {});
    views_.clear();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      views_.push_back(revealed(tables.sequences[i], lengths[i], pages_[i]));
    }
    return inner_->begin({.rows = tables.rows, .sequences = views_, .rope = tables.rope});
  }
  Status end() override { return inner_->end(); }

  Status embed(const Matrix& table, Act x) override { return inner_->embed(table, x); }
  Status add_positions(const Matrix& table, Act x) override { return inner_->add_positions(table, x); }
  Status norm(backend::NormKind kind, const Vector& weight, const Vector* bias, float eps, Act in, Act out) override {
    return inner_->norm(kind, weight, bias, eps, in, out);
  }
  Status head_norm(const Vector& weight, float eps, std::uint32_t n, Act x) override {
    return inner_->head_norm(weight, eps, n, x);
  }
  Status linear(const Matrix& weight, Act in, Act out) override { return inner_->linear(weight, in, out); }
  Status add_bias(const Vector& bias, Act x) override { return inner_->add_bias(bias, x); }
  Status add(Act y, Act x) override { return inner_->add(y, x); }
  Status rope(std::uint32_t n_heads, Act x) override { return inner_->rope(n_heads, x); }
  Status append_kv(std::uint32_t layer, Act k, Act v) override { return inner_->append_kv(layer, k, v); }
  Status attention(const backend::AttentionShape& shape, Act q, Act out) override {
    return inner_->attention(shape, q, out);
  }
  Status activate(backend::ActivationKind kind, Act x) override { return inner_->activate(kind, x); }
  Status activate_gated(backend::ActivationKind kind, Act gate, Act up) override {
    return inner_->activate_gated(kind, gate, up);
  }
  Status select_rows(std::span<const std::uint32_t> rows, Act in, Act out) override {
    return inner_->select_rows(rows, in, out);
  }
  Status keep_rows(std::span<const std::uint32_t> rows, std::span<const Act> acts) override {
    return inner_->keep_rows(rows, acts);
  }
  Status read(Act x, std::uint32_t row, std::span<float> out) override { return inner_->read(x, row, out); }

 private:
  using Pages = std::vector<std::byte*>;

  static KvView revealed(const KvView& kv, std::uint64_t length, Pages& pages) {
    pages.assign(kv.pages, kv.pages + kv.layout->pages(length));
    for (std::byte*& page : pages) page = HiddenMemory::reveal(page);
    return {.layout = kv.layout, .pages = pages.data()};
  }

  std::unique_ptr<Backend> inner_;
  HiddenMemory& memory_;
  std::vector<Pages> pages_;  // of the step
  std::vector<KvView> views_;
};

// What an Engine holds: an explicit instantiation may name a private member.
const std::shared_ptr<const Engine::State>& state_of(const Engine& engine);
template <std::shared_ptr<const Engine::State> Engine::*member>
struct OpenEngine {
  friend const std::shared_ptr<const Engine::State>& state_of(const Engine& engine) { return engine.*member; }
};
template struct OpenEngine<&Engine::state_>;

// The golden model with its KV pages in `memory`, which outlives it.
inline Engine load_hidden(const std::string& model, HiddenMemory& memory, const EngineOptions& options = {}) {
  Engine engine = load_golden(model, options);
  auto& state = const_cast<Engine::State&>(*state_of(engine));  // made without const, and nobody else has it yet
  state.backend = std::make_unique<HiddenBackend>(std::move(state.backend), memory);
  state.identity = detail::make_identity(state.model, *state.backend);
  state.kv_pools = must(detail::make_kv_pools(state));
  return engine;
}

}  // namespace tessera::test
