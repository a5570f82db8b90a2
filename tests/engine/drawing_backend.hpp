// An engine whose backend draws tokens: the CPU's, with sample() made of the host's sampler.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <tessera/sampling/chain.hpp>
#include <tessera/sampling/draw.hpp>

#include "engine/models.hpp"
#include "engine/states.hpp"

namespace tessera::test {

class DrawingBackend final : public backend::Backend {
 public:
  using Act = backend::Act;
  using Matrix = backend::Matrix;
  using Vector = backend::Vector;

  DrawingBackend(std::unique_ptr<Backend> cpu, std::size_t vocab) : cpu_(std::move(cpu)), logits_(vocab) {}

  std::size_t draws = 0;
  std::function<Status(Token&)> after_draw;  // may change the token, fail, or throw

  bool samples() const noexcept override { return true; }
  Status sample(Act logits, std::span<const backend::SampleRow> rows, std::span<Token> out) override {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      TESSERA_TRY_STATUS(cpu_->read(logits, rows[i].row, logits_));
      Sampler sampler = build(rows[i].steps);
      TESSERA_TRY(const auto distribution, sampler.distribution(logits_, {}, 0));
      out[i] = distribution[sampling::draw(distribution, rows[i].uniform)].token;
      ++draws;
      if (after_draw) TESSERA_TRY_STATUS(after_draw(out[i]));
    }
    return {};
  }

  std::string_view name() const noexcept override { return "drawing"; }
  std::vector<backend::Explanation> explain() const override { return cpu_->explain(); }
  std::uint64_t matrix_bytes(const backend::MatrixShape& s) const noexcept override { return cpu_->matrix_bytes(s); }
  std::uint64_t vector_bytes(std::uint64_t n) const noexcept override { return cpu_->vector_bytes(n); }
  std::uint64_t staging_bytes(const backend::MatrixShape& s) const noexcept override { return cpu_->staging_bytes(s); }
  std::uint64_t workspace_bytes(const backend::WorkspaceShape& s) const noexcept override {
    return cpu_->workspace_bytes(s);
  }
  Status reserve_weights(std::uint64_t bytes, std::uint64_t staging) override {
    return cpu_->reserve_weights(bytes, staging);
  }
  Status reserve_workspace(const backend::WorkspaceShape& shape) override { return cpu_->reserve_workspace(shape); }
  Result<const Matrix*> add_matrix(const backend::MatrixShape& shape, const backend::RowReader& read) override {
    return cpu_->add_matrix(shape, read);
  }
  Result<const Vector*> add_vector(std::span<const float> values) override { return cpu_->add_vector(values); }
  void finish_loading() noexcept override { cpu_->finish_loading(); }
  Status move_tokens(const KvView& kv, const backend::KvMove& move, const backend::RopeTable& rope) override {
    return cpu_->move_tokens(kv, move, rope);
  }

  Status begin(const backend::StepTables& tables) override { return cpu_->begin(tables); }
  Status end() override { return cpu_->end(); }
  Status embed(const Matrix& table, Act x) override { return cpu_->embed(table, x); }
  Status add_positions(const Matrix& table, Act x) override { return cpu_->add_positions(table, x); }
  Status norm(backend::NormKind kind, const Vector& weight, const Vector* bias, float eps, Act in, Act out) override {
    return cpu_->norm(kind, weight, bias, eps, in, out);
  }
  Status head_norm(const Vector& weight, float eps, std::uint32_t heads, Act x) override {
    return cpu_->head_norm(weight, eps, heads, x);
  }
  Status linear(const Matrix& weight, Act in, Act out) override { return cpu_->linear(weight, in, out); }
  Status add_bias(const Vector& bias, Act x) override { return cpu_->add_bias(bias, x); }
  Status add(Act y, Act x) override { return cpu_->add(y, x); }
  Status rope(std::uint32_t heads, Act x) override { return cpu_->rope(heads, x); }
  Status append_kv(std::uint32_t layer, Act k, Act v) override { return cpu_->append_kv(layer, k, v); }
  Status attention(const backend::AttentionShape& s, Act q, Act out) override { return cpu_->attention(s, q, out); }
  Status activate(backend::ActivationKind kind, Act x) override { return cpu_->activate(kind, x); }
  Status activate_gated(backend::ActivationKind kind, Act gate, Act up) override {
    return cpu_->activate_gated(kind, gate, up);
  }
  Status select_rows(std::span<const std::uint32_t> rows, Act in, Act out) override {
    return cpu_->select_rows(rows, in, out);
  }
  Status keep_rows(std::span<const std::uint32_t> rows, std::span<const Act> acts) override {
    return cpu_->keep_rows(rows, acts);
  }
  Status read(Act x, std::uint32_t row, std::span<float> out) override { return cpu_->read(x, row, out); }

 private:
  static Sampler build(const SampleSteps& steps) {
    auto made = sampling::chain();
    for (std::uint32_t i = 0; i < steps.size; ++i) {
      const SampleStep& step = steps.list[i];
      switch (step.kind) {
        case SampleStepKind::greedy: made.greedy(); break;
        case SampleStepKind::temperature: made.temperature(step.value); break;
        case SampleStepKind::top_k: made.top_k(step.count); break;
        case SampleStepKind::top_p: made.top_p(step.value, step.count); break;
      }
    }
    return made.build();
  }

  std::unique_ptr<Backend> cpu_;
  std::vector<float> logits_;  // of one row
};

// An instantiation may name private members, and a friend of it hands them out.
std::unique_ptr<Session::State>& state_of(Session& session);
template <std::unique_ptr<Session::State> Session::*kMember>
struct Opened {
  friend std::unique_ptr<Session::State>& state_of(Session& session) { return session.*kMember; }
};
template struct Opened<&Session::state_>;

// Puts a DrawingBackend around the engine's; it lives as long as the engine.
inline DrawingBackend& make_drawing(const Engine& engine) {
  Session session = must(engine.session());
  auto& state = const_cast<Engine::State&>(*state_of(session)->shared);
  auto drawing = std::make_unique<DrawingBackend>(std::move(state.backend), engine.spec().vocab_size);
  DrawingBackend& made = *drawing;
  state.backend = std::move(drawing);
  return made;
}

}  // namespace tessera::test
