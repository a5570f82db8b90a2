// A base class for backends that change some operations of another backend (the inner backend). It passes every plain operation on to the
// inner backend; a derived class overrides the operations that it changes. Exception: fused operations are not passed on. Their defaults
// call the plain operations, so that changes of plain operations take effect in them too.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backend/backend.hpp"

namespace tessera::backend {

class ForwardingBackend : public Backend {
 public:
  using Act = backend::Act;  // for backends of other namespaces
  using Matrix = backend::Matrix;
  using Vector = backend::Vector;

  explicit ForwardingBackend(std::unique_ptr<Backend> inner) : owned_(std::move(inner)), inner_(owned_.get()) {}
  // `inner` must outlive the object.
  explicit ForwardingBackend(Backend& inner) noexcept : inner_(&inner) {}

  [[nodiscard]] bool on_device() const noexcept override { return inner_->on_device(); }
  [[nodiscard]] std::shared_ptr<Memory> kv_memory() const noexcept override { return inner_->kv_memory(); }
  [[nodiscard]] bool holds(DType type) const noexcept override { return inner_->holds(type); }
  [[nodiscard]] bool holds_kv(DType type) const noexcept override { return inner_->holds_kv(type); }
  [[nodiscard]] std::vector<Explanation> explain() const override { return inner_->explain(); }
  [[nodiscard]] std::uint64_t matrix_bytes(const MatrixShape& s) const noexcept override {
    return inner_->matrix_bytes(s);
  }
  [[nodiscard]] std::uint64_t vector_bytes(std::uint64_t n) const noexcept override { return inner_->vector_bytes(n); }
  [[nodiscard]] std::uint64_t staging_bytes(const MatrixShape& s) const noexcept override {
    return inner_->staging_bytes(s);
  }
  [[nodiscard]] std::uint64_t workspace_bytes(const WorkspaceShape& s) const noexcept override {
    return inner_->workspace_bytes(s);
  }
  [[nodiscard]] std::uint64_t host_workspace_bytes(const WorkspaceShape& s) const noexcept override {
    return inner_->host_workspace_bytes(s);
  }
  Status reserve_weights(std::uint64_t bytes, std::uint64_t staging) override {
    return inner_->reserve_weights(bytes, staging);
  }
  Status reserve_workspace(const WorkspaceShape& shape) override { return inner_->reserve_workspace(shape); }
  Result<const Matrix*> add_matrix(const MatrixShape& shape, const RowReader& read) override {
    return inner_->add_matrix(shape, read);
  }
  Status scale_products(const Matrix& weight, std::span<const float> factors) override {
    return inner_->scale_products(weight, factors);
  }
  Status round_inputs(const Matrix& weight, const InputRounding& how) override { return inner_->round_inputs(weight, how); }
  Result<const Vector*> add_vector(std::span<const float> values) override { return inner_->add_vector(values); }
  void finish_loading() noexcept override { inner_->finish_loading(); }
  Status move_tokens(const KvView& kv, const KvMove& move, std::span<const RopeTable> ropes) override {
    return inner_->move_tokens(kv, move, ropes);
  }

  Status begin(const StepTables& tables) override { return inner_->begin(tables); }
  Status end() override { return inner_->end(); }
  Status embed(const Matrix& table, float scale, Act x) override { return inner_->embed(table, scale, x); }
  Status add_positions(const Matrix& table, Act scratch, Act x) override {
    return inner_->add_positions(table, scratch, x);
  }
  Status scale(float factor, Act x) override { return inner_->scale(factor, x); }
  Status softcap(float cap, Act x) override { return inner_->softcap(cap, x); }
  Status scale_by_position(double rate, std::uint64_t length, Act x) override {
    return inner_->scale_by_position(rate, length, x);
  }
  Status experts(const Experts& of, Act in, Act router, Act out) override {
    return inner_->experts(of, in, router, out);
  }
  Status gather(const Matrix& table, float scale, Act out) override { return inner_->gather(table, scale, out); }
  Status take_columns(Act in, std::uint64_t first, std::uint64_t count, Act out) override {
    return inner_->take_columns(in, first, count, out);
  }
  Status add_segments(const Matrix& table, Act scratch, Act x) override { return inner_->add_segments(table, scratch, x); }
  Status weigh(Act gate, Act x) override { return inner_->weigh(gate, x); }
  Status head_linear(const Matrix& weight, Act in, Act out) override { return inner_->head_linear(weight, in, out); }
  Status latent_append(const LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q) override {
    return inner_->latent_append(shape, turned_q, latent_q, turned_k, latent, q);
  }
  Status shift_rows(std::uint32_t layer, Act x) override { return inner_->shift_rows(layer, x); }
  Status convolve(const Convolution& how, Act x) override { return inner_->convolve(how, x); }
  Status delta_rule(const Recurrence& how, Act qkv, Act steps, Act betas, Act out) override {
    return inner_->delta_rule(how, qkv, steps, betas, out);
  }
  Status scan(const Recurrence& how, Act xbc, Act steps, Act decays, Act out) override {
    return inner_->scan(how, xbc, steps, decays, out);
  }
  Status group_norm(const Vector& weight, float eps, std::uint32_t n_groups, Act x) override {
    return inner_->group_norm(weight, eps, n_groups, x);
  }
  Status multiply(Act y, Act x) override { return inner_->multiply(y, x); }
  Status norm(const Norm& norm, Act in, Act out) override { return inner_->norm(norm, in, out); }
  Status head_norm(const Vector& weight, float eps, std::uint32_t n, Act x) override {
    return inner_->head_norm(weight, eps, n, x);
  }
  Status linear(const Matrix& weight, Act in, Act out) override { return inner_->linear(weight, in, out); }
  Status add_bias(const Vector& bias, Act x) override { return inner_->add_bias(bias, x); }
  Result<HostRows> host_rows(Act x, std::size_t columns) override { return inner_->host_rows(x, columns); }
  Status set_tokens(std::span<const Token> tokens) override { return inner_->set_tokens(tokens); }
  Status share(std::uint32_t from, Act x) override { return inner_->share(from, x); }
  Status add(Act y, Act x) override { return inner_->add(y, x); }
  Status rope(std::uint32_t table, std::uint32_t n, Act x) override { return inner_->rope(table, n, x); }
  Status append_kv(std::uint32_t layer, Act k, Act v) override { return inner_->append_kv(layer, k, v); }
  Status attention(const AttentionShape& shape, Act q, Act out) override {
    return inner_->attention(shape, q, out);
  }
  Status activate(ActivationKind kind, Act x) override { return inner_->activate(kind, x); }
  Status activate_gated(ActivationKind kind, Act gate, Act up) override {
    return inner_->activate_gated(kind, gate, up);
  }
  Status select_rows(std::size_t selection, Act in, Act out) override { return inner_->select_rows(selection, in, out); }
  Status keep_rows(std::span<const Act> acts) override { return inner_->keep_rows(acts); }
  Status read(Act x, std::uint32_t row, std::span<float> out) override { return inner_->read(x, row, out); }
  [[nodiscard]] std::uint64_t low_rank_bytes(const LowRankShape& shape) const noexcept override { return inner_->low_rank_bytes(shape); }
  Result<std::shared_ptr<const LowRank>> hold_low_rank(const LowRankShape& shape, const LowRankValues& values) const override {
    return inner_->hold_low_rank(shape, values);
  }
  Status add_low_rank(std::span<const LowRankTerm> terms, Act in) override { return inner_->add_low_rank(terms, in); }
  Status add_low_rank_of_tokens(std::span<const LowRankTerm> terms, float factor) override {
    return inner_->add_low_rank_of_tokens(terms, factor);
  }
  void change_product(const LowRank& change, float scale, std::uint32_t index, std::span<const float> in,
                      std::span<float> product) noexcept override {
    inner_->change_product(change, scale, index, in, product);
  }
  [[nodiscard]] bool samples() const noexcept override { return inner_->samples(); }
  Status sample(Act logits, std::size_t first, std::span<Token> out) override {
    return inner_->sample(logits, first, out);
  }

 protected:
  [[nodiscard]] Backend& inner() noexcept { return *inner_; }
  [[nodiscard]] const Backend& own() const noexcept { return *inner_; }

 private:
  std::unique_ptr<Backend> owned_;
  Backend* inner_;
};

}  // namespace tessera::backend
