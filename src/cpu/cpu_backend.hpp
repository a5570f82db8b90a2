// The CPU backend: runs an instruction set's kernels on an Executor. Activations are f32. Products read their input as prepared rows, in
// the form that the family of their arithmetic needs (prepared_rows.hpp). Rows are prepared once for all products of the same input.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <tessera/backend/instruction_set.hpp>
#include <tessera/core/numerics.hpp>
#include <tessera/extend/core/executor.hpp>
#include <tessera/extend/core/memory.hpp>

#include "backend/backend.hpp"
#include "cpu/attention/attention_plan.hpp"
#include "cpu/attention/stretches.hpp"
#include "cpu/kernels.hpp"
#include "cpu/products/packed_matrix.hpp"
#include "cpu/products/product.hpp"

namespace tessera::cpu {

class CpuBackend final : public backend::Backend {
 public:
  using Act = backend::Act;
  using Matrix = backend::Matrix;
  using MatrixShape = backend::MatrixShape;
  using Vector = backend::Vector;

  // `executor` and `memory` must outlive the backend; `set` must not be automatic, and the machine must run it.
  // `refused`: the reason why a better set of the CPU was not taken; empty if there is none.
  CpuBackend(Executor& executor, Memory& memory, InstructionSet set, Numerics numerics, std::string refused = {});

  [[nodiscard]] std::string_view name() const noexcept override { return "cpu"; }
  [[nodiscard]] std::vector<backend::Explanation> explain() const override;
  [[nodiscard]] bool invariant() const noexcept override {
    return numerics_ != Numerics::fastest || !kernels_.has_tiles;
  }

  [[nodiscard]] std::uint64_t matrix_bytes(const MatrixShape& shape) const noexcept override;
  [[nodiscard]] std::uint64_t vector_bytes(std::uint64_t n) const noexcept override;
  [[nodiscard]] std::uint64_t staging_bytes(const MatrixShape& shape) const noexcept override;
  [[nodiscard]] std::uint64_t workspace_bytes(const backend::WorkspaceShape& shape) const noexcept override;
  Status reserve_weights(std::uint64_t bytes, std::uint64_t staging) override;
  Status reserve_workspace(const backend::WorkspaceShape& shape) override;
  Result<const Matrix*> add_matrix(const MatrixShape& shape, const backend::RowReader& read) override;
  Status scale_products(const Matrix& weight, std::span<const float> factors) override;
  Result<const Vector*> add_vector(std::span<const float> values) override;
  void finish_loading() noexcept override;

  Status move_tokens(const KvView& kv, const backend::KvMove& move, std::span<const backend::RopeTable> ropes) override;

  Status begin(const backend::StepTables& tables) override;
  Status end() override;
  Status embed(const Matrix& table, float scale, Act x) override;
  Status add_positions(const Matrix& table, Act scratch, Act x) override;
  Status scale(float factor, Act x) override;
  Status softcap(float cap, Act x) override;
  Status scale_by_position(double rate, std::uint64_t length, Act x) override;
  Status experts(const backend::Experts& of, Act in, Act router, Act out) override;
  Status gather(const Matrix& table, float scale, Act out) override;
  Status take_columns(Act in, std::uint64_t first, std::uint64_t count, Act out) override;
  Status weigh(Act gate, Act x) override;
  Status head_linear(const Matrix& weight, Act in, Act out) override;
  Status latent_append(const backend::LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q) override;
  Status convolve(const backend::Convolution& how, Act x) override;
  Status delta_rule(const backend::Recurrence& how, Act qkv, Act steps, Act betas, Act out) override;
  Status scan(const backend::Recurrence& how, Act xbc, Act steps, Act decays, Act out) override;
  Status group_norm(const Vector& weight, float eps, std::uint32_t n_groups, Act x) override;
  Status multiply(Act y, Act x) override;
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
  Status select_rows(std::size_t first, std::size_t count, Act in, Act out) override;
  Status keep_rows(std::span<const Act> acts) override;
  Status read(Act x, std::uint32_t row, std::span<float> out) override;
  Status linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) override;
  Status linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) override;
  Status linear_group(std::span<const backend::LinearPart> parts, Act in) override;
  Status norm_linear_group(const backend::Norm& norm, Act in, Act scratch,
                           std::span<const backend::LinearPart> parts) override;
  Status activated_linear(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act out) override;
  Status activated_linear_residual(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act scratch,
                                   Act x) override;
  Status rope_append(const backend::HeadShape& shape, Act q, Act k, Act v) override;

 private:
  struct Activation {
    float* data = nullptr;       // [rows, columns]
    std::size_t capacity = 0;    // the most columns
    std::size_t columns = 0;     // columns that the last operation wrote
  };

  // The factors of one rope table for rotating heads at the positions of the step's rows.
  struct Turns {
    float* factors = nullptr;  // [rows][4 * pairs]: rope_factors()
    std::size_t pairs = 0;
    bool interleaved = false;

    [[nodiscard]] float* row(std::size_t i) const noexcept { return factors + i * 4 * pairs; }
  };

  // Calls fn(item, scratch) for each item in [0, n), on any threads, each thread with its own scratch.
  template <class Fn>
  void for_each(std::size_t n, std::size_t grain, Fn&& fn) noexcept;
  // Calls fn(row, scratch) for each row of the step, in parallel if rows of `columns` columns are enough work.
  template <class Fn>
  void for_each_row(std::size_t columns, Fn&& fn) noexcept;

  // Return an activation. Use act() to read it, and written() to write it: written() invalidates the activation's prepared rows.
  Activation& act(Act id) noexcept { return acts_[static_cast<std::size_t>(id)]; }
  Activation& written(Act id) noexcept {
    if (prepared_act_ == id) prepared_kind_ = {};
    return act(id);
  }

  // InputKind: the form in which a kernel's products read an activation. Input: an activation in this form.
  struct InputKind {
    InputForm form = InputForm::count;  // count: no form
    std::size_t group = 1;              // rows of a group
    bool operator==(const InputKind&) const = default;
  };
  struct Input {
    const std::byte* rows;
    std::size_t stride;  // bytes
    std::size_t group;
  };
  [[nodiscard]] InputKind input_of(PackedForm form) const noexcept;
  Input prepare(Act in, const InputKind& kind) noexcept;
  // Prepares rows that are not an activation: values(row, scratch) computes the row and returns it.
  template <class Values>
  Input prepare_rows(std::size_t columns, const InputKind& kind, Values values) noexcept;
  [[nodiscard]] backend::Explanation explain_products(DType dtype, std::size_t count) const;
  [[nodiscard]] Family family_of(PackedForm form, std::size_t rows) const noexcept;
  [[nodiscard]] Family attention_family_of(KvType type) const noexcept;
  // Returns whether products of 16-bit weights, keys and values are computed in the families that AMX's tile registers compute (bf16,
  // bf16x3).
  [[nodiscard]] bool as_tiles() const noexcept;
  [[nodiscard]] const Linear& kernel_of(PackedForm form) const noexcept;  // the kernel for the number of rows of the step
  // Computes the products of `parts`, which all read the input `in`, as one piece of parallel work.
  void multiply(std::span<const backend::LinearPart> parts, const Input& in, float* residual) noexcept;
  void run(std::span<const Product> products, std::size_t items) noexcept;
  // Computes the products of all parts. The parts have the same input, but may need it in different kinds; prepare(kind) returns the input
  // in a kind.
  template <class Prepare>
  Status multiply_all(std::span<const backend::LinearPart> parts, Prepare prepare, Act residual = Act::count);
  // Computes the product of an activated input. If `residual` is an activation (not Act::count), adds the product to it.
  Status activated_product(const backend::Activated& of, const backend::LinearPart& part, Act residual);
  [[nodiscard]] bool all_prepared(std::span<const backend::LinearPart> parts) const noexcept;
  void norm_row(const backend::Norm& norm, const float* x, std::size_t n, float* out) const noexcept;
  // The arguments of one layer's attention, for all rows of the step.
  struct AttentionCall {
    const backend::AttentionShape& shape;
    const KvLayerShape& dims;
    const Activation &queries, &out;
  };
  void attend_blocks(const backend::AttentionShape& shape, const KvLayerShape& dims, const Activation& queries,
                     const Activation& out) noexcept;
  void attend_whole(const AttentionCall& call, const AttentionPhase& phase) noexcept;
  void attend_split(const AttentionCall& call, const AttentionPhase& phase) noexcept;
  [[nodiscard]] AttendJob attend_job_of(const AttentionCall& call, const AttentionPhase& phase, const RowBlock& block,
                                        std::size_t head, std::byte* scratch) const noexcept;
  // Votes (cpu_votes.cpp): vote_bytes() returns the memory for the scores of voting rows; begin_votes() gives each voting row its part of
  // it, to which attention writes; count_votes() turns the scores into votes and adds them up.
  [[nodiscard]] static std::uint64_t vote_bytes(const backend::WorkspaceShape& shape) noexcept;
  Status begin_votes(std::span<const backend::RowVotes> votes);
  void count_votes(const backend::AttentionShape& shape) noexcept;
  [[nodiscard]] const Attend& attend_kernel(const KvView& kv, std::uint32_t layer) const noexcept;
  [[nodiscard]] const KvView& kv_of(const AttentionPhase& phase, const RowBlock& block) const noexcept;
  // Returns the other sequences that get the row's key and value too.
  [[nodiscard]] std::span<const KvView> branches_of(const backend::RowTable& row) const noexcept {
    return std::span<const KvView>(sequences_).subspan(row.also, row.n_also);
  }
  [[nodiscard]] std::size_t head_rows_bytes(std::uint64_t inputs) const noexcept;  // scratch of a task of head_linear()
  [[nodiscard]] std::size_t scratch_bytes(const backend::WorkspaceShape& shape) const noexcept;
  // The steps of experts(), in order: deal_to_experts() sorts rows by expert; prepare_slots() prepares their inputs; multiply_slots()
  // computes the products with all experts' matrices in `parts`; join_slots() lets ExpertProducts change the products.
  void deal_to_experts(std::uint32_t n_experts, std::uint32_t n_used) noexcept;
  template <class Fill>
  void prepare_slots(const Matrix& weight, std::uint32_t n_slots, Fill fill) noexcept;
  struct SlotsPart {
    const Matrix* weight;
    const Vector* bias;  // biases of all experts, or nullptr
    float* out;
  };
  enum class Biases : std::uint8_t { added, left_out };
  void multiply_slots(std::initializer_list<SlotsPart> parts, Biases biases) noexcept;
  template <class InputOf>
  void join_slots(backend::ExpertProducts& behind, std::initializer_list<SlotsPart> parts, InputOf input_of) noexcept;
  [[nodiscard]] std::uint64_t expert_bytes(const backend::WorkspaceShape& shape) const noexcept;
  [[nodiscard]] std::uint64_t slot_row_bytes(const backend::WorkspaceShape& shape) const noexcept;
  [[nodiscard]] std::uint64_t prepared_bytes(const backend::WorkspaceShape& shape) const noexcept;
  // Recurrent layers: find_states() finds the memory from which the step's rows read the state and to which they write it; recur() computes
  // the recurrence of all heads along each sequence.
  void find_states(std::uint32_t layer, std::uint64_t offset) noexcept;
  struct HeadColumns {  // a head's first columns in an activation's row
    std::size_t key, query, value;
  };
  template <class Columns>
  void recur(const backend::Recurrence& how, const Activation& rows, const Activation& decays, const Activation& rates, Activation& out,
             StateFn step, Columns columns) noexcept;
  Result<std::byte*> take_weights(std::uint64_t bytes) noexcept;
  Status populate_weights(const std::byte* end) noexcept;  // populates pages up to `end`, and some behind it

  Executor& executor_;
  Memory& memory_;
  InstructionSet set_;
  std::string refused_;
  Numerics numerics_;
  Kernels kernels_;
  std::size_t slots_;  // tasks that run at once, each with its own scratch
  Stretches stretches_;

  Buffer weights_;
  std::uint64_t weights_used_ = 0, weights_populated_ = 0;
  Buffer staging_;
  std::deque<Matrix> matrices_;
  bool all_quantised_ = true;
  std::deque<Vector> vectors_;

  Buffer workspace_;
  Activation acts_[backend::kActs];
  float* rope_ = nullptr;     // rope_floats_ floats: memory for the factors of all turns_
  std::size_t rope_floats_ = 0;
  std::byte* prepared_ = nullptr;  // prepared rows, row_layout(form).bytes each, in groups; of prepared_act_, if prepared_kind_ is set
  Act prepared_act_ = Act::count;
  InputKind prepared_kind_;
  float* states_ = nullptr;       // attention: [rows][n_heads][maximum, sum], while phases merge chunks
  float* partials_ = nullptr;     // attention: split_floats() floats
  std::byte* scratch_ = nullptr;  // [slots][scratch_size_]
  std::size_t scratch_size_ = 0;
  std::size_t max_rows_ = 0;

  // The working memory of experts(). A slot is one row at one of the experts that it takes. The slots of an expert lie side by side.
  struct Slots {
    float* gate = nullptr;       // [slots, ffn_dim], then the experts' outputs [slots, width]
    float* up = nullptr;         // [slots, ffn_dim]
    std::byte* rows = nullptr;   // prepared rows, each expert's from at[expert] on
    std::uint32_t* chosen = nullptr;     // [rows, n_used], ascending
    float* weights = nullptr;            // [rows, n_used]
    std::uint32_t* slot_of = nullptr;    // [rows, n_used]
    std::uint32_t* row_of = nullptr;     // [slots]
    std::uint32_t* expert_of = nullptr;  // [slots]
    std::uint64_t* first = nullptr;      // [n_experts]: an expert's first slot; its last is before the next expert's first
    std::uint64_t* at = nullptr;         // [n_experts]: offset into `rows`
    std::vector<InputKind> kinds;        // [n_experts]
    std::vector<Product> products;
    std::uint32_t n_experts = 0, n_slots = 0;

    [[nodiscard]] std::size_t count(std::uint32_t expert) const noexcept {
      return (expert + 1 < n_experts ? first[expert + 1] : n_slots) - first[expert];
    }
  } experts_;

  // The rows that vote, and their scores in the present layer, which later become weights  [voters][heads][keys].
  struct Voting {
    float* scores = nullptr;
    std::size_t most = 0;    // the most voters
    std::size_t stride = 0;  // floats from a head to the next
    std::size_t heads = 0;
    std::vector<backend::RowVotes> rows;  // the step's voters
    std::vector<float*> at;               // [rows of the step]: address of the row's scores, or nullptr; empty: no row votes
  } voting_;

  // The present step.
  std::vector<backend::RowTable> rows_;
  std::vector<KvView> sequences_;
  std::span<const std::uint32_t> wanted_, selected_;  // StepTables::wanted, selected
  AttentionPlan attention_plan_;
  std::size_t n_rows_ = 0;  // fewer than rows_.size() after select_rows
  std::vector<Turns> turns_;  // [StepTables::ropes]
  // For the recurrent layer that is being computed: the runs of consecutive rows of one sequence, and for each row the address to which the
  // state after the row is written.
  struct SequenceRows {
    std::size_t first, count;
    const float* before;  // the state before the first row; nullptr: zeros
  };
  std::vector<SequenceRows> runs_;
  std::vector<float*> states_after_;  // [rows]
};

}  // namespace tessera::cpu
