// The CUDA backend. Every operation only puts kernels into one stream; end() and read() wait for them. Activations are f32. Products of few
// rows use kernels of our own, which read packed weights (family cuda-f32). Products of many rows use cuBLASLt, with weights and
// activations in 16 bits. Exception: with Numerics::invariant, our own kernels compute all products, because cuBLASLt's results depend on
// the number of rows.
#pragma once

#include <memory>

#include <tessera/backend/cuda_options.hpp>
#include <tessera/core/numerics.hpp>
#include <tessera/extend/core/memory.hpp>

#include "backend/backend.hpp"
#include "cuda/attention/step_attention.hpp"
#include "cuda/attention/votes.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/kernel_table.hpp"
#include "cuda/kernels/products/unpack.hpp"
#include "cuda/kernels/sampling.hpp"
#include "cuda/products/experts.hpp"
#include "cuda/products/low_rank.hpp"
#include "cuda/products/many_rows.hpp"
#include "cuda/recurrent.hpp"
#include "cuda/step_arena.hpp"
#include "cuda/step_rows.hpp"
#include "cuda/weights/weight_store.hpp"

namespace tessera::cuda {

class CudaBackend final : public backend::Backend {
 public:
  using Act = backend::Act;
  using Matrix = backend::Matrix;
  using MatrixShape = backend::MatrixShape;
  using Vector = backend::Vector;

  // Before open(), only the functions that compute sizes may be called. `host` must outlive the backend.
  CudaBackend(Numerics numerics, Memory& host) noexcept;
  ~CudaBackend() override;
  Status open(const CudaOptions& options);

  [[nodiscard]] std::string_view name() const noexcept override { return "cuda"; }
  [[nodiscard]] std::vector<backend::Explanation> explain() const override;
  [[nodiscard]] bool invariant() const noexcept override { return numerics_ == Numerics::invariant; }
  [[nodiscard]] bool on_device() const noexcept override { return true; }
  [[nodiscard]] bool activates(ActivationKind kind) const noexcept override {
    return kActivationRows[static_cast<std::size_t>(kind)].computed == Computed::by_kernels;
  }
  [[nodiscard]] bool holds(DType type) const noexcept override;
  [[nodiscard]] bool holds_kv(DType type) const noexcept override;
  [[nodiscard]] std::shared_ptr<Memory> kv_memory() const noexcept override { return kv_memory_; }

  [[nodiscard]] std::uint64_t matrix_bytes(const MatrixShape& shape) const noexcept override { return WeightStore::matrix_bytes(shape); }
  [[nodiscard]] std::uint64_t vector_bytes(std::uint64_t n) const noexcept override { return WeightStore::vector_bytes(n); }
  [[nodiscard]] std::uint64_t staging_bytes(const MatrixShape& shape) const noexcept override { return WeightStore::staging_bytes(shape); }
  [[nodiscard]] std::uint64_t workspace_bytes(const backend::WorkspaceShape& shape) const noexcept override;
  [[nodiscard]] std::uint64_t host_workspace_bytes(const backend::WorkspaceShape& shape) const noexcept override;
  Status reserve_weights(std::uint64_t bytes, std::uint64_t staging) override { return weights_.reserve(device_, bytes, staging); }
  Status reserve_workspace(const backend::WorkspaceShape& shape) override;
  Result<const Matrix*> add_matrix(const MatrixShape& shape, const backend::RowReader& read) override { return weights_.add_matrix(shape, read); }
  Result<const Vector*> add_vector(std::span<const float> values) override { return weights_.add_vector(values); }
  Status scale_products(const Matrix& weight, std::span<const float> factors) override { return weights_.scale_products(weight, factors); }
  void finish_loading() noexcept override { weights_.finish_loading(); }

  Status move_tokens(const KvView& kv, const backend::KvMove& move, std::span<const backend::RopeTable> ropes) override;

  Status begin(const backend::StepTables& tables) override;
  Status end() override;
  Status embed(const Matrix& table, float scale, Act x) override;
  Status add_positions(const Matrix& table, Act scratch, Act x) override;
  Status scale(float factor, Act x) override;
  Status norm(const backend::Norm& norm, Act in, Act out) override;
  Status head_norm(const Vector& weight, float eps, std::uint32_t n_heads, Act x) override;
  Status linear(const Matrix& weight, Act in, Act out) override;
  Status add_bias(const Vector& bias, Act x) override;
  Status add(Act y, Act x) override;
  Status rope(std::uint32_t table, std::uint32_t n_heads, Act x) override;
  Status append_kv(std::uint32_t layer, Act k, Act v) override;
  Status attention(const backend::AttentionShape& shape, Act q, Act out) override;
  Status activate(ActivationKind kind, Act x) override;
  Status activate_gated(ActivationKind kind, Act gate, Act up) override;
  Status select_rows(std::size_t selection, Act in, Act out) override;
  Status keep_rows(std::span<const Act> acts) override;
  Status read(Act x, std::uint32_t row, std::span<float> out) override;
  Status linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) override;
  Status linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) override;
  Status rope_append(const backend::HeadShape& shape, Act q, Act k, Act v) override;
  Status softcap(float cap, Act x) override;
  Status scale_by_position(double rate, std::uint64_t length, Act x) override;
  Status experts(const backend::Experts& of, Act in, Act router, Act out) override;
  Status gather(const Matrix& table, float scale, Act out) override;
  Status take_columns(Act in, std::uint64_t first, std::uint64_t count, Act out) override;
  Status weigh(Act gate, Act x) override;
  Status add_segments(const Matrix& table, Act scratch, Act x) override;
  Status head_linear(const Matrix& weight, Act in, Act out) override;
  Status latent_append(const backend::LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q) override;
  Status convolve(const backend::Convolution& how, Act x) override;
  Status delta_rule(const backend::Recurrence& how, Act qkv, Act steps, Act betas, Act out) override;
  Status scan(const backend::Recurrence& how, Act xbc, Act steps, Act decays, Act out) override;
  [[nodiscard]] std::uint64_t low_rank_bytes(const backend::LowRankShape& shape) const noexcept override;
  Result<std::shared_ptr<const backend::LowRank>> hold_low_rank(const backend::LowRankShape& shape,
                                                                const backend::LowRankValues& values) const override;
  Status add_low_rank(std::span<const backend::LowRankTerm> terms, Act in) override;
  Status add_low_rank_of_tokens(std::span<const backend::LowRankTerm> terms, float factor) override;
  Status group_norm(const Vector& weight, float eps, std::uint32_t n_groups, Act x) override;
  Status multiply(Act y, Act x) override;
  [[nodiscard]] bool samples() const noexcept override { return true; }
  Status sample(Act logits, std::size_t first, std::span<Token> out) override;

 private:
  struct Activation {
    float* data = nullptr;    // [rows, columns] on the device
    std::size_t columns = 0;  // columns that the last operation wrote
  };

  // Return an activation. Use act() to read it, and written() to write it: written() invalidates the activation's converted rows.
  Activation& act(Act id) noexcept { return acts_[static_cast<std::size_t>(id)]; }
  Activation& written(Act id) noexcept {
    many_rows_.forget(id);
    return act(id);
  }
  [[nodiscard]] DeviceRows rows_of(Act id) noexcept { return {act(id).data, static_cast<std::uint32_t>(act(id).columns)}; }

  // Cuts the workspace into its buffers, and returns the bytes that they take. If `base` is null, only computes the bytes.
  std::uint64_t lay_out(const backend::WorkspaceShape& shape, std::byte* base) noexcept;
  [[nodiscard]] static std::uint64_t table_bytes(const backend::WorkspaceShape& shape) noexcept;
  template <class Args>
  Status launch(Kernel kernel, Grid grid, std::uint32_t threads, std::size_t shared, const Args& args) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return {};
    return device_->launch(kernel, grid, threads, shared, args);
  }
  [[nodiscard]] Grid row_grid() const noexcept { return {.x = rows_.count()}; }
  Status append_copies(const KvSet& set, std::uint32_t layer, Act k, Act v);
  Status count_votes(const backend::AttentionShape& shape, const KvSet& set, Act q);
  Status gather_rows_of(const DeviceMatrix& table, const std::uint32_t* indices, Activation& out, UnpackStore store, float scale);
  // out = W in (+ bias), or out += W in (+ bias), as `out.store` says.
  Status product(const DeviceMatrix& weight, const Vector* bias, Act in, const ProductOut& out);
  Status scale_product(const DeviceWeight& weight, const Activation& out);

  Numerics numerics_;
  Memory& host_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<DeviceMemory> kv_memory_;
  KernelTable kernels_;
  WeightStore weights_;

  DeviceBuffer workspace_;
  Activation acts_[backend::kActs];
  std::size_t max_rows_ = 0;
  ManyRowProducts many_rows_;
  ExpertFeeds expert_feeds_;

  // The present step.
  StepArena arena_;
  bool under_way_ = false;
  StepRows rows_;
  StepAttention attention_;
  RecurrentLayers recurrent_;
  LowRankChanges low_rank_;
  VoteCounter votes_;
  const backend::SampleRow* draws_ = nullptr;  // StepTables::draws on the device
  StepArena::Table<SampleResult> drawn_ = {};  // [draws]: the drawn tokens
};

}  // namespace tessera::cuda
