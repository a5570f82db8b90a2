// The CUDA backend. Every operation puts kernels into one stream; end() and read() wait for them. Activations are f32. Products of few rows
// use kernels of our own, which read packed weights (family cuda-f32). Products of many rows use cuBLASLt, with weights and activations in
// 16 bits, unless the numerics are to be invariant.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <tessera/backend/cuda_options.hpp>
#include <tessera/core/numerics.hpp>
#include <tessera/extend/core/memory.hpp>

#include "backend/backend.hpp"
#include "cuda/attention/attention_plan.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/weights/device_weight.hpp"
#include "cuda/products/experts.hpp"
#include "cuda/products/gemm.hpp"
#include "cuda/kernel_table.hpp"
#include "cuda/kernels/heads.hpp"
#include "cuda/kernels/products/linear_few.hpp"
#include "cuda/kernels/sampling.hpp"
#include "cuda/kernels/products/unpack.hpp"
#include "cuda/products/low_rank.hpp"
#include "cuda/weights/packed_layout.hpp"
#include "cuda/recurrent.hpp"
#include "cuda/row_lists.hpp"
#include "cuda/step_arena.hpp"
#include "cuda/attention/votes.hpp"

namespace tessera::cuda {

// Returns the distance between rows of 16-bit numbers, in numbers: rows begin at multiples of 16 bytes.
[[nodiscard]] constexpr std::uint32_t half_stride(std::uint64_t columns) noexcept {
  return static_cast<std::uint32_t>((columns + 7) / 8 * 8);
}

// From this many rows on, products use cuBLASLt.
inline constexpr std::size_t kGemmRows = 17;

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

  [[nodiscard]] std::uint64_t matrix_bytes(const MatrixShape& shape) const noexcept override;
  [[nodiscard]] std::uint64_t vector_bytes(std::uint64_t n) const noexcept override;
  [[nodiscard]] std::uint64_t staging_bytes(const MatrixShape& shape) const noexcept override;
  [[nodiscard]] std::uint64_t workspace_bytes(const backend::WorkspaceShape& shape) const noexcept override;
  [[nodiscard]] std::uint64_t host_workspace_bytes(const backend::WorkspaceShape& shape) const noexcept override;
  Status reserve_weights(std::uint64_t bytes, std::uint64_t staging) override;
  Status reserve_workspace(const backend::WorkspaceShape& shape) override;
  Result<const Matrix*> add_matrix(const MatrixShape& shape, const backend::RowReader& read) override;
  Result<const Vector*> add_vector(std::span<const float> values) override;
  Status scale_products(const Matrix& weight, std::span<const float> factors) override;
  void finish_loading() noexcept override;

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
  struct DeviceVector {
    const float* data = nullptr;
    std::uint64_t n = 0;
  };
  // The rows whose sequences have the same KV layout. Kernels are launched once for each set; for the rows of other
  // sets, RowValues::sequences has kNoSequence.
  struct KvSet {
    const KvLayout* layout = nullptr;
    std::vector<KvTables> tables = {};  // [group of layers]
    // Rows whose keys and values go to branches too (backend::RowTable::also): for each such copy its row, sequence and position.
    struct Copies {
      const std::uint32_t* rows = nullptr;
      const std::uint32_t* sequences = nullptr;
      const std::uint64_t* positions = nullptr;
      std::uint32_t count = 0;
    };
    Copies copies = {};
  };
  // Lists on the device with one entry for each row: for all rows of the step, or only for the wanted rows.
  struct RowValues {
    const std::uint64_t* positions = nullptr;
    const std::uint64_t* ends = nullptr;  // RowTable::end
    const std::uint32_t* tokens = nullptr;  // kNoRow for a row that has an embedding instead of a token
    const std::uint32_t* gathered = nullptr;  // tokens, also those of rows that have an embedding (RowTable::token)
    const std::uint32_t* segments = nullptr;
    const std::uint32_t* places = nullptr;  // positions as indices into a table of learned positions
    const std::uint32_t* embeddings =
        nullptr;  // index of the row's embedding, or kNoRow; nullptr if no row of the step has one
    std::vector<const std::uint32_t*> sequences =
        {};  // [KV sets][rows]: the row's sequence, or kNoSequence if it is of another set
  };
  [[nodiscard]] DeviceRows rows_of(Act id) noexcept { return {act(id).data, static_cast<std::uint32_t>(act(id).columns)}; }
  [[nodiscard]] const RowValues& lists() const noexcept { return row_lists_[static_cast<std::size_t>(now_)]; }
  // Returns the page tables of the layer's group, with the branches' copies in place of rows.
  static KvTables tables_of_copies(const KvSet& set, std::size_t layer) noexcept {
    KvTables tables = tables_of(set, layer);
    tables.row_sequence = set.copies.sequences;
    tables.row_position = set.copies.positions;
    return tables;
  }
  // Returns the page tables of the layer's group.
  static const KvTables& tables_of(const KvSet& set, std::size_t layer) noexcept {
    return set.tables[set.layout->layers[layer].group];
  }
  // The rows that operations compute: at first all rows of the step, after keep_rows() the wanted rows.
  enum class RowsNow : std::uint8_t { all, wanted };
  static constexpr std::size_t kRowsNow = 2;
  // How one step computes attention in the layers of one shape: the plans, with their tiles on the device. Most layers
  // of a model have the same shape, so a step makes few plans.
  struct PlannedAttention {
    struct OfRows {
      AttentionPlan plan;
      const AttentionTile* tiles[std::size(kQueryClasses)] = {};  // the tiles on the device
    };
    AttentionHeads heads;
    std::uint32_t key_dim = 0;
    std::size_t kv_set = 0;
    OfRows of[kRowsNow];  // by RowsNow
  };

  Activation& act(Act id) noexcept { return acts_[static_cast<std::size_t>(id)]; }
  Activation& written(Act id) noexcept {
    if (half_act_ == id) half_act_ = Act::count;
    return act(id);
  }
  static const DeviceWeight& weight_of(const Matrix& matrix) noexcept {
    return reinterpret_cast<const DeviceWeight&>(matrix);
  }
  static const DeviceMatrix& matrix_of(const Matrix& matrix) noexcept { return weight_of(matrix); }
  static const DeviceVector& vector_of(const Vector& vector) noexcept {
    return reinterpret_cast<const DeviceVector&>(vector);
  }

  // Cuts the workspace into its buffers, and returns the bytes that they take. If `base` is null, only computes the bytes.
  std::uint64_t lay_out(const backend::WorkspaceShape& shape, std::byte* base) noexcept;
  [[nodiscard]] static std::uint64_t table_bytes(const backend::WorkspaceShape& shape) noexcept;
  template <class Args>
  Status launch(Kernel kernel, Grid grid, std::uint32_t threads, std::size_t shared, const Args& args) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return {};
    return device_->launch(kernel, grid, threads, shared, args);
  }
  Result<CUdeviceptr> take_weights(std::uint64_t bytes) noexcept;
  Status upload_pages(KvSet& set, std::span<const KvView> sequences);
  Status upload_copies(KvSet& set, std::span<const KvView> sequences);
  Status append_copies(const KvSet& set, std::uint32_t layer, Act k, Act v);
  template <class T, class Of>
  Result<const T*> upload_of(std::span<const std::uint32_t> rows, const Of& of_rows);
  Status upload_lists(std::span<const std::uint32_t> rows, std::span<const KvView> sequences, RowValues& lists);
  // Returns `sequence`, or kNoSequence if it belongs to another set.
  static std::uint32_t sequence_in(const KvSet& set, std::span<const KvView> sequences,
                                   std::uint32_t sequence) noexcept;
  Status upload_embeddings();
  void use_lists(RowsNow rows);
  [[nodiscard]] Grid row_grid() const noexcept { return {.x = static_cast<std::uint32_t>(n_rows_)}; }
  Status gather_rows_of(const DeviceMatrix& table, const std::uint32_t* indices, Activation& out, UnpackStore store, float scale);
  // The destination of a product [rows, outputs]. If the product is added to `data`, cuBLASLt's result is written to `scratch` first.
  struct ProductOut {
    float* data;
    LinearStore store = LinearStore::set;
    float* scratch = nullptr;
  };
  // out = W in (+ bias), or out += W in (+ bias), as `out.store` says.
  Status product(const DeviceMatrix& weight, const Vector* bias, Act in, const ProductOut& out);
  Status scale_product(const DeviceWeight& weight, const Activation& out);
  Status gemm_product(const DeviceMatrix& weight, const Vector* bias, Act in, const ProductOut& out);
  Status prepare_half(Act in, GemmType type);
  [[nodiscard]] static AttentionHeads heads_of(const backend::AttentionShape& shape, const KvLayer& layer) noexcept;
  // Returns the plans of attention with these heads; nullptr if begin() made none.
  [[nodiscard]] const PlannedAttention* planned(const AttentionHeads& heads, std::uint32_t key_dim,
                                                std::size_t kv_set) const noexcept;
  Status plan_attentions(std::span<const backend::AttentionShape> shapes, std::span<const KvView> sequences);
  Status plan_of_rows(std::span<const std::uint32_t> rows, std::span<const KvView> sequences, RowsNow now,
                      PlannedAttention& at);
  [[nodiscard]] bool wants_gemm() const noexcept { return numerics_ != Numerics::invariant; }
  [[nodiscard]] static PrepareStateArgs vectors_of(const backend::Recurrence& how) noexcept;
  Status warm_up_gemm();
  void give_up_gemm(std::string why) noexcept;

  Numerics numerics_;
  Memory& host_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<DeviceMemory> kv_memory_;
  KernelTable kernels_;
  std::unique_ptr<Gemm> gemm_;
  std::string no_gemm_;                     // the reason why cuBLASLt is not used, although it was wanted
  std::atomic<bool> gemm_refused_ = false;  // true: cuBLASLt has refused a shape; since then all products use our own kernels

  DeviceBuffer weights_;
  std::uint64_t weights_used_ = 0;
  struct Staging;  // exists while the model is loaded
  std::unique_ptr<Staging> staging_;
  // Each matrix has an allocation of its own, because the handle that add_matrix() returns is its address, which must not change. The
  // list is a vector, which takes no memory while it is empty. So a backend that only plans (one before open()) is made without failing.
  std::vector<std::unique_ptr<DeviceWeight>> matrices_;
  std::vector<MatrixShape> shapes_;  // shapes of the matrices
  std::vector<std::unique_ptr<DeviceVector>> vectors_;

  DeviceBuffer workspace_;
  Activation acts_[backend::kActs];
  ExpertFeeds expert_feeds_;
  std::byte* half_rows_ = nullptr;     // [rows][inputs]: the activation half_act_, converted to 16 bits (half_type_)
  float* half_scales_ = nullptr;       // [rows]
  std::byte* half_weights_ = nullptr;  // half_weight_bytes_ of memory: weights of some outputs, unpacked to f16
  std::uint64_t half_weight_bytes_ = 0;
  std::byte* gemm_workspace_ = nullptr;
  float* partials_ = nullptr;
  float* embeddings_ =
      nullptr;  // [rows][embedding_dim_]: the embeddings that a step's rows have of their own, one after another
  std::uint64_t embedding_dim_ = 0;
  std::uint64_t partial_floats_ = 0;
  std::size_t max_rows_ = 0;
  Act half_act_ = Act::count;  // the activation in half_rows_; count: none
  GemmType half_type_ = GemmType::f16;

  // The present step.
  StepArena arena_;
  bool under_way_ = false;
  std::vector<backend::RowTable> rows_;
  std::span<const std::uint32_t> wanted_;         // StepTables::wanted
  const std::uint32_t* wanted_list_ = nullptr;    // the same list on the device
  RowLists selections_;                           // StepTables::selections on the device
  const backend::SampleRow* draws_ = nullptr;     // StepTables::draws on the device
  StepArena::Table<SampleResult> drawn_ = {};     // a result for each of them
  RowValues row_lists_[kRowsNow];                 // by RowsNow
  RowsNow now_ = RowsNow::all;
  std::vector<std::uint32_t> every_row_, page_counts_;
  std::vector<std::uint32_t> embedding_places_;  // [rows]: index in embeddings_, or kNoRow
  std::uint32_t n_embeddings_ = 0;
  std::vector<std::uint32_t> planned_sequences_;  // memory for plan_of_rows()
  std::vector<std::uint64_t> planned_positions_, planned_ends_;
  std::vector<KvSet> kv_sets_;
  std::size_t n_kv_sets_ = 0;
  std::vector<PlannedAttention> attentions_;
  std::size_t n_attentions_ = 0;
  RecurrentLayers recurrent_;
  LowRankChanges low_rank_;
  VoteCounter votes_;
  std::vector<RopeTurns> turns_;  // [StepTables::ropes]
  std::size_t n_rows_ = 0;
};

}  // namespace tessera::cuda
