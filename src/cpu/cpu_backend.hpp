// The CPU backend: computes a model's operations with the kernels of one instruction set, on the threads of an Executor. Activations are
// f32. Products read their input as prepared rows, in the form that the family of their arithmetic needs (prepared_rows.hpp). Rows are
// prepared once for all products of the same input.
#pragma once

#include <memory>
#include <vector>

#include <tessera/backend/instruction_set.hpp>
#include <tessera/core/numerics.hpp>
#include <tessera/extend/core/executor.hpp>
#include <tessera/extend/core/memory.hpp>

#include "backend/backend.hpp"
#include "cpu/attention/attention_plan.hpp"
#include "cpu/attention/voters.hpp"
#include "cpu/experts/expert_slots.hpp"
#include "cpu/kernels.hpp"
#include "cpu/products/packed_matrix.hpp"
#include "cpu/products/product.hpp"
#include "cpu/recurrent/state_rows.hpp"
#include "cpu/tasks.hpp"
#include "cpu/weight_store.hpp"
#include "cpu/workspace.hpp"

namespace tessera::cpu {

class CpuBackend final : public backend::Backend {
 public:
  using Act = backend::Act;
  using Matrix = backend::Matrix;
  using MatrixShape = backend::MatrixShape;
  using Vector = backend::Vector;

  // `executor` and `memory` must outlive the backend. `set` must not be automatic, and the machine must run it. `refused`: the reason why a
  // better set of the CPU was not taken; empty if there is none.
  CpuBackend(Executor& executor, Memory& memory, InstructionSet set, Numerics numerics, std::string refused = {});

  [[nodiscard]] std::string_view name() const noexcept override { return "cpu"; }
  [[nodiscard]] std::vector<backend::Explanation> explain() const override;
  [[nodiscard]] bool invariant() const noexcept override {
    return numerics_ != Numerics::fastest || !kernels_.has_tiles;
  }

  [[nodiscard]] bool computes(backend::Capability) const noexcept override { return true; }
  [[nodiscard]] std::uint64_t matrix_bytes(const MatrixShape& shape) const noexcept override { return WeightStore::matrix_bytes(shape); }
  [[nodiscard]] std::uint64_t vector_bytes(std::uint64_t n) const noexcept override { return WeightStore::vector_bytes(n); }
  [[nodiscard]] std::uint64_t staging_bytes(const MatrixShape& shape) const noexcept override { return WeightStore::staging_bytes(shape); }
  [[nodiscard]] std::uint64_t workspace_bytes(const backend::WorkspaceShape& shape) const noexcept override;
  Status reserve_weights(std::uint64_t bytes, std::uint64_t staging) override { return weights_.reserve(bytes, staging); }
  Status reserve_workspace(const backend::WorkspaceShape& shape) override;
  Result<const Matrix*> add_matrix(const MatrixShape& shape, const backend::RowReader& read) override { return weights_.add_matrix(shape, read); }
  Status scale_products(const Matrix& weight, std::span<const float> factors) override { return weights_.scale_products(weight, factors); }
  Status round_inputs(const Matrix& weight, const InputRounding& how) override { return weights_.round_inputs(weight, how); }
  Result<const Vector*> add_vector(std::span<const float> values) override { return weights_.add_vector(values); }
  void finish_loading() noexcept override { weights_.finish_loading(); }

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
  Status add_segments(const Matrix& table, Act scratch, Act x) override;
  Status weigh(Act gate, Act x) override;
  Status head_linear(const Matrix& weight, Act in, Act out) override;
  Status latent_append(const backend::LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q) override;
  Status convolve(const backend::Convolution& how, Act x) override;
  Status delta_rule(const backend::Recurrence& how, Act qkv, Act steps, Act betas, Act out) override;
  Status scan(const backend::Recurrence& how, Act xbc, Act steps, Act decays, Act out) override;
  Status group_norm(const Vector& weight, float eps, std::uint32_t n_groups, Act x) override;
  Status multiply(Act y, Act x) override;
  Result<backend::HostRows> host_rows(Act x, std::size_t columns) override;
  Status set_tokens(std::span<const Token> tokens) override;
  Status norm(const backend::Norm& norm, Act in, Act out) override;
  Status head_norm(const Vector& weight, float eps, std::uint32_t n_heads, Act x) override;
  Status linear(const Matrix& weight, Act in, Act out) override;
  Status add_bias(const Vector& bias, Act x) override;
  Status add(Act y, Act x) override;
  Status rope(std::uint32_t table, std::uint32_t n_heads, Act x) override;
  Status shift_rows(std::uint32_t layer, Act x) override;
  Status append_kv(std::uint32_t layer, Act k, Act v) override;
  Status attention(const backend::AttentionShape& shape, Act q, Act out) override;
  Status activate(ActivationKind kind, Act x) override;
  Status activate_gated(ActivationKind kind, Act gate, Act up) override;
  Status select_rows(std::size_t selection, Act in, Act out) override;
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
  [[nodiscard]] std::uint64_t low_rank_bytes(const backend::LowRankShape& shape) const noexcept override;
  Result<std::shared_ptr<const backend::LowRank>> hold_low_rank(const backend::LowRankShape& shape,
                                                                const backend::LowRankValues& values) const override;
  Status add_low_rank(std::span<const backend::LowRankTerm> terms, Act in) override;
  Status add_low_rank_of_tokens(std::span<const backend::LowRankTerm> terms, float factor) override;
  void change_product(const backend::LowRank& change, float scale, std::uint32_t index, std::span<const float> in,
                      std::span<float> product) noexcept override;

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
  void for_each(std::size_t n, std::size_t grain, Fn&& fn) noexcept {
    tasks_.for_each(n, grain, fn);
  }
  // Calls fn(row, scratch) for each row of the step, in parallel if rows of `columns` columns are enough work.
  template <class Fn>
  void for_each_row(std::size_t columns, Fn&& fn) noexcept {
    if (n_rows_ != 0) tasks_.for_each(n_rows_, std::max<std::size_t>(1, kValuesWorthSharing / columns), fn);
  }

  // Return an activation. Use act() to read it, and written() to write it: written() invalidates the activation's prepared rows.
  Activation& act(Act id) noexcept { return acts_[static_cast<std::size_t>(id)]; }
  Activation& written(Act id) noexcept {
    if (prepared_act_ == id) prepared_kind_ = {};
    return act(id);
  }

  // An input of products, prepared in one form.
  struct Input {
    const std::byte* rows;
    std::size_t stride;  // bytes
    std::size_t group;
  };
  [[nodiscard]] InputKind input_of(const Matrix& weight) const noexcept;
  Input prepare(Act in, const InputKind& kind) noexcept;
  // Prepares rows that are not an activation: values(row, scratch) computes the row and returns it.
  template <class Values>
  Input prepare_rows(std::size_t columns, const InputKind& kind, Values values) noexcept;
  [[nodiscard]] backend::Explanation explain_products(const Matrix& weight, std::size_t count) const;
  // family_of() returns the family of a matrix's products with `rows` rows. unrounded_family_of() returns the family that these products
  // have without InputRounding; head_linear() uses this one, because it never rounds its rows.
  [[nodiscard]] Family family_of(const Matrix& weight, std::size_t rows) const noexcept;
  [[nodiscard]] Family unrounded_family_of(PackedForm form, std::size_t rows) const noexcept;
  [[nodiscard]] Family attention_family_of(KvType type) const noexcept;
  // Returns true if 16-bit weights, keys and values are multiplied in families bf16 and bf16x3, which AMX's tile registers compute: on
  // machines with AMX, and with numerics bf16 or invariant on all machines.
  [[nodiscard]] bool as_tiles() const noexcept;
  [[nodiscard]] const Linear& kernel_of(const Matrix& weight) const noexcept;  // the kernel for the number of rows of the step
  // Computes the products of `parts`, which all read the input `in`, as one piece of parallel work.
  void multiply(std::span<const backend::LinearPart> parts, const Input& in, float* residual) noexcept;
  void run(std::span<const Product> products, std::size_t items) noexcept;
  // Computes the products of all parts. They have the same input, but weights of different formats may need it in different forms.
  // prepare(kind) returns the input in one form (InputKind).
  template <class Prepare>
  Status multiply_all(std::span<const backend::LinearPart> parts, Prepare prepare, Act residual = Act::count);
  // Computes the product of an activated input. If `residual` is an activation (not Act::count), adds the product to it.
  Status activated_product(const backend::Activated& of, const backend::LinearPart& part, Act residual);
  template <class Number>
  void add_rows_of(const Matrix& table, Act scratch, Act x, Number number);
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
  // Turns the scores that attention left for the voters into votes, and adds these up (cpu_votes.cpp).
  void count_votes(const backend::AttentionShape& shape) noexcept;
  [[nodiscard]] const Attend& attend_kernel(const KvView& kv, std::uint32_t layer) const noexcept;
  [[nodiscard]] const KvView& kv_of(const AttentionPhase& phase, const RowBlock& block) const noexcept;
  // Returns the other sequences that get the row's key and value too.
  [[nodiscard]] std::span<const KvView> branches_of(const backend::RowTable& row) const noexcept {
    return std::span<const KvView>(sequences_).subspan(row.also, row.n_also);
  }
  // The steps of experts(). A slot is a row together with one of its experts (expert_slots.hpp). After ExpertSlots::deal() follow, in
  // this order: prepare_slots() prepares the inputs of all slots; multiply_slots() multiplies them by their experts' matrices in `parts`;
  // join_slots() lets ExpertProducts (adapters) change the products.
  template <class Fill>
  void prepare_slots(const Matrix& weight, std::uint32_t n_slots, Fill fill) noexcept;
  struct SlotsPart {
    const Matrix* weight;
    const Vector* bias;  // biases of all experts, or nullptr
    float* out;
  };
  enum class Biases : std::uint8_t { added, left_out };
  void multiply_slots(std::initializer_list<SlotsPart> parts, Biases biases) noexcept;
  // Writes to `out` for each row the weighted sum of its n_used slots' results, each [width], in the order of the row's experts.
  void add_up_slots(std::size_t width, std::size_t n_used, Act out) noexcept;
  template <class InputOf>
  void join_slots(backend::ExpertProducts& behind, std::initializer_list<SlotsPart> parts, InputOf input_of) noexcept;
  // Helpers of recurrent layers. find_states() finds the memory of the states before and after the step's rows (StateRows::find()).
  // recur() computes the recurrence of all heads along each sequence.
  void find_states(std::uint32_t layer, std::uint64_t offset) noexcept {
    state_rows_.find(std::span(rows_).first(n_rows_), sequences_, layer, offset);
  }
  struct HeadColumns {  // in an activation's row: the first column of a head's key, of its query, and of its value
    std::size_t key, query, value;
  };
  template <class Columns>
  void recur(const backend::Recurrence& how, const Activation& rows, const Activation& decays, const Activation& rates, Activation& out,
             StateFn step, Columns columns) noexcept;
  // The work of add_low_rank(). The lists keep their memory.
  struct LowRankWork {
    struct Down {  // a task that computes t, for one matrix of a term: some rows from `row` on, and some rows of A from `rank` on
      std::uint32_t term, matrix;
      std::size_t row, rank;
    };
    struct Up {  // a task that adds B t, for one matrix of terms [first, last): some panels of outputs, from `panel` on
      std::uint32_t first, last, matrix;
      std::size_t panel;
    };
    std::vector<Down> downs;
    std::vector<Up> ups;
    std::vector<float> t;             // t of all terms, each [matrix][row][rank]
    std::vector<std::size_t> t_at;    // [term]: index in t of the term's first number
    void place(std::span<const backend::LowRankTerm> terms, std::span<const backend::ChangedRows> changes);
  };
  [[nodiscard]] std::span<const std::uint32_t> rows_of(const backend::LowRankTerm& term) const noexcept { return changes_[term.rows].rows; }
  Status add_changes(std::span<const backend::LowRankTerm> terms);

  Memory& memory_;
  InstructionSet set_;
  std::string refused_;
  Numerics numerics_;
  Kernels kernels_;
  Tasks tasks_;
  WeightStore weights_;

  Buffer workspace_;
  Workspace space_;  // places of the buffers in the workspace
  std::size_t max_rows_ = 0;
  Activation acts_[backend::kActs];
  Act prepared_act_ = Act::count;  // the activation whose rows are prepared, if prepared_kind_ is set
  InputKind prepared_kind_;
  ExpertSlots experts_;
  Voters voters_;
  LowRankWork low_rank_;

  // The present step.
  std::vector<backend::RowTable> rows_;
  std::vector<KvView> sequences_;
  std::span<const std::uint32_t> wanted_;                       // StepTables::wanted
  std::span<const std::span<const std::uint32_t>> selections_;  // StepTables::selections
  std::span<const backend::ChangedRows> changes_;               // StepTables::changes
  AttentionPlan attention_plan_;
  std::size_t n_rows_ = 0;  // rows that operations compute; after select_rows() or keep_rows() fewer than rows_.size()
  std::vector<Turns> turns_;  // [StepTables::ropes]
  StateRows state_rows_;      // states of the recurrent layer that is being computed
};

}  // namespace tessera::cpu
