// The interface between the forward pass and the device that computes it (CPU, GPU). A backend holds packed weights and a workspace of
// named activations (Act). Operations work on all rows of a step. They take handles (weights, Acts), never the caller's pointers.
//
// A step: begin(tables) uploads tokens, embeddings, positions, KV tables, lists of rows and draws, and plans attention. Operations follow
// in order, and upload nothing. end() waits for them. The tables must live until end(). For a given number of rows, the operations
// between begin() and end() have fixed shapes, so a CUDA graph can capture them. Every begin() needs an end(), even if an operation
// failed. After end() nothing runs any more.
//
// Contract: an operation's result for one row depends only on the row's inputs and on its sequence's KV cache. If the backend is
// invariant(), this holds bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/input_rounding.hpp>
#include <tessera/extend/core/memory.hpp>
#include <tessera/extend/core/operation_kinds.hpp>
#include <tessera/extend/kv/kv_view.hpp>

#include "backend/explanation.hpp"
#include "backend/low_rank.hpp"
#include "backend/sample_row.hpp"

namespace tessera::backend {

// The activations of a step, each [rows, columns] of f32. The backend owns them. An operation writes only activations that its signature
// names. Activations that the operation's comment calls scratch have no defined value afterwards.
enum class Act : std::uint8_t {
  x,       // the residual stream           [rows, d_model]
  h,       // a norm's output               [rows, d_model]
  h2,      // a second norm's output        [rows, d_model]
  q,       // queries                       [rows, n_heads * key_dim]
  k,       // keys                          [rows, n_kv_heads * key_dim]
  v,       // values                        [rows, n_kv_heads * value_dim]
  attn,    // attention's output            [rows, n_heads * value_dim]
  gate,    // gated FFN                     [rows, ffn_dim]
  up,      // FFN                           [rows, ffn_dim]
  linear,  // a product before its residual [rows, d_model]
  router,  // a router's logits             [rows, n_experts]
  per_layer,  // each layer's vector of a token  [rows, n_layers * per_layer_dim]
  features,   // a draft head's input from the layers of a step  [rows, d_model]
  logits,  // [output rows, vocab]
  count
};
inline constexpr std::size_t kActs = static_cast<std::size_t>(Act::count);

// Packed weights. Only the backend that made them can use them, and they live as long as the backend.
struct Matrix;  // [outputs, inputs]
struct Vector;  // [n], f32

struct MatrixShape {
  DType dtype = DType::f32;
  std::uint64_t outputs = 0;
  std::uint64_t inputs = 0;
  std::uint64_t count = 1;  // matrices of this shape, one after another: a layer's experts

  [[nodiscard]] std::uint64_t rows() const noexcept { return count * outputs; }
};

// A function that reads a matrix: fills `out` with rows [first, first + count) in the file's format. A backend reads each row once, in
// ascending order.
using RowReader = std::function<Status(std::uint64_t first, std::uint64_t count, std::span<std::byte> out)>;

struct Norm {
  NormKind kind = NormKind::rms;
  const Vector* weight = nullptr;  // never nullptr in a call
  const Vector* bias = nullptr;  // nullptr: no bias
  float eps = 0.0f;
};

// An input of a product that is the output of an activation function: act(up), or with a gate act(gate) * up. (clamped_swiglu also changes
// `up`: see ActivationKind.) The product may overwrite `gate` and `up`.
struct Activated {
  ActivationKind kind = ActivationKind::silu;
  Act gate = Act::count;  // Act::count: no gate
  Act up = Act::up;
};

// Chooses the experts of a row and their weights from the router's logits [n_experts]:
//   score    by `kind`: the expert's share of the softmax, its sigmoid, or (chosen_softmax) its logit
//   choice   the n_used experts with the highest score + bias; if these are equal, the experts with the lower index. Only experts of the
//            n_used_groups best groups may be chosen; GroupScore says how a group is ranked by its experts' scores + biases
//   weight   the score without the bias, or (chosen_softmax) the softmax over the chosen experts' scores; divided by the sum of the
//            row's weights if `renormalises`; times `scale`; times the expert's own factor in `scales`
struct Routing {
  RoutingKind kind = RoutingKind::softmax;
  std::uint32_t n_used = 0;
  std::uint32_t n_groups = 1, n_used_groups = 1;
  GroupScore group_score = GroupScore::two_best;
  const Vector* bias = nullptr;  // [n_experts]; nullptr: none
  const Vector* scales = nullptr;  // [n_experts], which multiply the experts' weights; nullptr: none
  bool renormalises = false;
  float scale = 1.0f;
};

// A hook that changes the products of experts (to add an adapter's change, for example). experts() calls join() for each product before
// the product's bias is added: experts in ascending order, and an expert's rows in ascending order.
class ExpertProducts {
 public:
  virtual ~ExpertProducts() = default;
  // May change `product` [outputs], which is matrix `expert` of `weight` times `in` [inputs]. `row`: the row of the step that takes this
  // expert, and to which `in` belongs.
  virtual void join(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                    std::span<float> product) noexcept = 0;
};

// A hook for ranks that have only some columns of every row (ranks/rank_backend.hpp): in the middle of experts() it exchanges columns
// with the other ranks. Both functions get `n` rows with this rank's columns, one row after another, and replace them by rows with all
// ranks' columns. The memory at `rows` has room for the longer rows.
class ExpertExchange {
 public:
  virtual ~ExpertExchange() = default;
  virtual Status gather_activated(float* rows, std::size_t n) = 0;  // the inputs of `down`
  virtual Status gather_results(float* rows, std::size_t n) = 0;    // products with `down`, biases included
  [[nodiscard]] virtual std::size_t result_columns() const noexcept = 0;  // columns of all ranks together
};

// A layer's experts: gated FFNs or plain ones. Their inputs and outputs have `width` columns.
struct Experts {
  const Matrix* gate = nullptr;  // n_experts times [ffn_dim, width]; nullptr: no gate
  const Matrix* up = nullptr;    // n_experts times [ffn_dim, width]
  const Matrix* down = nullptr;  // n_experts times [width, ffn_dim]
  const Vector* gate_bias = nullptr;  // [n_experts, ffn_dim]; nullptr: none
  const Vector* up_bias = nullptr;    // [n_experts, ffn_dim]; nullptr: none
  const Vector* down_bias = nullptr;  // [n_experts, width]; nullptr: none
  ActivationKind activation = ActivationKind::silu;
  Routing routing;
  ExpertProducts* behind = nullptr;  // changes each product; nullptr: no change
  ExpertExchange* exchange = nullptr;  // set if this rank has only some outputs of the matrices; `behind` gets only these outputs
};

// The rows of an activation, in memory that the processor can address.
struct HostRows {
  float* data = nullptr;  // [rows, columns]
  std::size_t rows = 0, columns = 0;
};

// The rotation of heads with their positions: the first 2 * frequencies.size() elements of a head rotate.
struct RopeTable {
  RopePairs pairs = RopePairs::interleaved;
  std::span<const double> frequencies;  // [pairs], radians per position
  float magnitude = 1.0f;               // rotated elements are multiplied by it
};

// A row that votes for the keys that it sees. A token budget later drops the keys with the fewest votes. For each key, attention adds to
// the key's sum the squares of the attention weights that the row's query heads give to the key, in units of 1 / kVoteUnits. The weights
// are squared so that a head that looks at few keys outweighs many heads that look a little at all keys. The sums are integers, so they do
// not depend on the order of rows, layers and tasks.
struct RowVotes {
  std::uint32_t row = 0;  // index in the step
  std::span<std::uint64_t> of_keys;  // sums [position + 1] or more; rows of one sequence may share them
};
inline constexpr std::uint32_t kVoteUnits = 1u << 18;

// Attention of one layer.
struct AttentionShape {
  std::uint32_t layer = 0;  // index in the KV view
  std::uint32_t n_heads = 0;
  std::uint32_t window = 0;  // 0: none
  std::uint32_t globals = 0;  // number of first keys that a row sees in addition to its window
  std::uint32_t ahead = 0;    // number of later keys that a row sees, up to RowTable::end; kAllAhead: all of them
  float scale = 1.0f;
  float softcap = 0.0f;           // scores s become softcap * tanh(s / softcap); 0: no softcap
  const Vector* sinks = nullptr;  // [n_heads], sink logits, which join each head's softmax without a value; nullptr: none
  bool counts_votes = false;      // adds to StepTables::votes

  bool operator==(const AttentionShape&) const noexcept = default;
};

// A convolution along each sequence, column by column: a row sees its own input and the inputs of the `width` - 1 rows before it.
struct Convolution {
  std::uint32_t layer = 0;        // index in the KV view
  const Vector* weight = nullptr;  // [width][columns]; the weights of the row's own input come last
  const Vector* bias = nullptr;    // [columns]; nullptr: none
  bool silu = false;               // applied to the result
};

// The arguments of delta_rule() and scan(), which update states along each sequence. Each head has a state S [keys][values]. The heads of
// a group share keys and queries; `group_order` says to which group a head belongs. ("keys" is a dimension of S, not attention's keys.)
struct Recurrence {
  std::uint32_t layer = 0;  // index in the KV view
  std::uint32_t heads = 0, groups = 0;
  std::uint32_t keys = 0, values = 0;
  StateGroups group_order = StateGroups::blocks;
  std::uint64_t state_offset = 0;     // floats in the layer's state before the heads' states
  const Vector* rate = nullptr;       // [heads]: rate of decay; below 0
  const Vector* step_bias = nullptr;  // [heads]
  const Vector* skip = nullptr;       // [heads], for scan()
};

// Latent attention of one layer (DeepSeek-V2 2024). All query heads share one KV head. Its key is the turned key followed by the latent,
// and its value is the latent.
struct LatentShape {
  std::uint32_t layer = 0;  // index in the KV view
  std::uint32_t n_heads = 0;
  const Vector* norm = nullptr;  // [latent]
  float eps = 0.0f;
  std::uint32_t rope = kNoRope;  // index into StepTables::ropes
};

// Capabilities that some models need and some backends do not have.
enum class Capability : std::uint8_t {
  softcap, temperature, experts, score_softcap, sinks, recurrence, latent, value_norm, shared_keys, per_layer_inputs,
  weight_scales, rounded_inputs, global_tokens, both_sides, segments,
  votes,     // needed by token budgets, not by models
  branches,  // RowTable::n_also, needed by draft trees
  low_rank   // add_low_rank(), needed by adapters
};

// Tokens of a sequence that move to lower positions. All pages involved must be writable.
struct KvMove {
  std::uint64_t from = 0, to = 0, count = 0;
  std::span<const std::uint64_t> first = {};  // [group of layers]: tokens before this position stay in place; empty: all tokens move

  // Returns how many of the `count` tokens, counted from the first one, stay in place in the layers of a group.
  [[nodiscard]] std::uint64_t skipped(std::size_t group) const noexcept {
    if (first.empty() || first[group] <= from) return 0;
    return first[group] - from < count ? first[group] - from : count;
  }
};

// The largest sizes that the workspace must have room for.
struct WorkspaceShape {
  std::uint32_t rows = 0;         // rows of a step
  std::uint32_t output_rows = 0;  // largest number of rows whose logits are computed at once
  std::uint64_t columns[kActs] = {};
  std::uint32_t ropes = 0;          // rope tables of a step
  std::uint32_t rope_dims = 0;      // elements of a head that rotate, summed over all tables
  std::uint32_t max_heads = 0;      // query heads of a layer
  std::uint32_t max_group = 0;      // query heads a KV head
  std::uint32_t max_key_dim = 0;
  std::uint32_t max_value_dim = 0;
  std::uint64_t head_inputs = 0;  // inputs of one matrix of head_linear(); 0: no layer uses it
  std::uint32_t voters = 0;       // rows of a step that vote; 0: no row votes
  std::uint64_t vote_keys = 0;    // keys that a voting row sees
  // Layers with experts.
  std::uint32_t n_experts = 0, used_experts = 0;
  std::uint64_t expert_inputs = 0, expert_dim = 0;  // an expert's width and ffn_dim
};

struct RowTable {
  const float* embedding = nullptr;  // [d_model], instead of the token's embedding
  Token token = 0;                   // only in a row with an embedding: the token that gather() takes; 0 if there is none
  std::uint32_t sequence = 0;        // index into StepTables::sequences
  // The step's sequences [also, also + n_also) are branches of the row's sequence: they get its key and value at this position too. A branch
  // has a copy of the position's page, or shares the page with the row's sequence. If it shares the page, the same bits are written twice.
  std::uint32_t also = 0, n_also = 0;
  std::uint64_t position = 0;
  std::uint64_t end = 0;      // end of the row's text: no row of the sequence at or after this position is in the step
  std::uint32_t segment = 0;  // the row of the table that add_segments() adds
  std::uint32_t first_adapter = 0, n_adapters = 0;  // the row's adapters, a range of StepTables::adapters
};

class AdapterWeights;  // backend/adapter_weights.hpp

struct StepAdapter {
  const AdapterWeights* weights = nullptr;
  float scale = 1.0f;
};

struct StepTables {
  std::span<const RowTable> rows;
  std::span<const KvView> sequences;
  std::span<const RopeTable> ropes;  // operations name a table by its index
  std::span<const RowVotes> votes = {};  // used until keep_rows(), which ends the voting; at most WorkspaceShape::voters
  std::span<const std::uint32_t> wanted = {};    // rows that keep_rows() keeps, ascending
  // Lists of rows for select_rows(). A list has row numbers, ascending: the numbers that rows have after keep_rows(), which are indices
  // into `wanted`. (Without keep_rows() every row is wanted.)
  std::span<const std::span<const std::uint32_t>> selections = {};
  // Every attention that the step computes. `counts_votes` has no meaning here.
  std::span<const AttentionShape> attentions = {};
  std::span<const SampleRow> draws = {};  // the draws of sample(), in the order in which sample() makes them
  std::span<const StepAdapter> adapters = {};  // only AdapterBackend reads them
  std::span<const ChangedRows> changes = {};   // the lists of rows that terms of add_low_rank() name; AdapterBackend makes them
};

// One of several products of the same activation.
struct LinearPart {
  const Matrix* weight = nullptr;
  const Vector* bias = nullptr;  // nullptr: none
  Act out = Act::count;
};

// The operations on q, k and v between their products and attention.
struct HeadShape {
  std::uint32_t layer = 0;  // index in the KV view
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  const Vector* q_norm = nullptr;  // nullptr: no norm
  const Vector* k_norm = nullptr;
  const Vector* v_norm = nullptr;  // always over each head
  bool norms_together = false;     // q and k are normed over all heads of a row, not over each head
  bool norms_behind_rope = false;  // q and k are rotated first, then normed
  float eps = 0.0f;
  std::uint32_t rope = kNoRope;    // index into StepTables::ropes
  bool queries_alone = false;      // the pages have the keys and values already: another layer's, which this layer shares
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual std::vector<Explanation> explain() const = 0;
  // Returns whether the bits of a row's results are independent of the other rows in the step.
  [[nodiscard]] virtual bool invariant() const noexcept { return true; }
  // Returns whether weights, workspace and KV pages are in a device's memory, not the host's.
  [[nodiscard]] virtual bool on_device() const noexcept { return false; }
  // Returns the memory for KV pages; nullptr: the host's. The pointer is shared, because a copy of a session's cache may outlive the
  // backend.
  [[nodiscard]] virtual std::shared_ptr<Memory> kv_memory() const noexcept { return nullptr; }

  // Returns whether the backend has the capability. Loading refuses a model that needs a capability which the backend lacks.
  [[nodiscard]] virtual bool computes(Capability capability) const noexcept {
    return capability != Capability::rounded_inputs;
  }
  // Returns whether the backend computes the activation function. Loading refuses a model that needs another one.
  [[nodiscard]] virtual bool activates(ActivationKind) const noexcept { return true; }

  // Returns whether the backend can hold matrices of a weight format; loading asks first.
  [[nodiscard]] virtual bool holds(DType) const noexcept { return true; }
  // Returns whether the backend writes and reads keys and values of a KV type.
  [[nodiscard]] virtual bool holds_kv(DType) const noexcept { return true; }

  // --- Loading: reserve once, then add exactly what was planned.
  [[nodiscard]] virtual std::uint64_t matrix_bytes(const MatrixShape& shape) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t vector_bytes(std::uint64_t n) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t staging_bytes(const MatrixShape& shape) const noexcept = 0;  // bytes of memory for packing a matrix
  [[nodiscard]] virtual std::uint64_t workspace_bytes(const WorkspaceShape& shape) const noexcept = 0;
  // Returns the bytes that the backend needs in the host's memory, in addition to a workspace on a device.
  [[nodiscard]] virtual std::uint64_t host_workspace_bytes(const WorkspaceShape&) const noexcept { return 0; }
  virtual Status reserve_weights(std::uint64_t bytes, std::uint64_t staging) = 0;
  virtual Status reserve_workspace(const WorkspaceShape& shape) = 0;
  virtual Result<const Matrix*> add_matrix(const MatrixShape& shape, const RowReader& read) = 0;
  virtual Result<const Vector*> add_vector(std::span<const float> values) = 0;
  // Gives a matrix factors for its products: each product with matrix i of `weight` is multiplied by factors[i], before bias and residual.
  // The factors apply in linear(), in experts() and in the operations made of them. Call it right after add_matrix(). Uses
  // vector_bytes(factors.size()) of the reserved memory. Needs computes(Capability::weight_scales).
  virtual Status scale_products(const Matrix& weight, std::span<const float> factors);
  // Rounds the inputs of the matrix's products: in linear(), experts() and the operations made of them, not in head_linear(). Products of
  // other matrices get the rows unrounded. Call it for the matrix that was added last. Needs computes(Capability::rounded_inputs).
  virtual Status round_inputs(const Matrix& weight, const InputRounding& how);
  virtual void finish_loading() noexcept = 0;  // frees the staging memory

  // Moves the tokens at positions [from, from + count) to [to, to + count), to < from, in all layers of `kv`. Exception: tokens that
  // KvMove::first keeps in place. Values keep their bits. Keys are rotated back by from - to positions; in layers without rope they
  // keep their bits. On an error nothing has moved. `ropes`: a table for each layer  [n_layers].
  virtual Status move_tokens(const KvView& kv, const KvMove& move, std::span<const RopeTable> ropes) = 0;

  // --- A step. A backend computes one step at a time; the engine queues them.
  virtual Status begin(const StepTables& tables) = 0;
  virtual Status end() = 0;

  // x = the embedding of each row's token * scale. Exception: if a row has an embedding of its own, x gets it unscaled.
  virtual Status embed(const Matrix& table, float scale, Act x) = 0;
  // x += table[position]. `scratch` is as wide as x.
  virtual Status add_positions(const Matrix& table, Act scratch, Act x) = 0;
  // x *= factor.
  virtual Status scale(float factor, Act x) = 0;
  // out = norm(in) * weight (+ bias); `out` may be `in`.
  virtual Status norm(const Norm& norm, Act in, Act out) = 0;
  // Computes RMSNorm over each head of x  [rows, n_heads, head_dim], in place.
  virtual Status head_norm(const Vector& weight, float eps, std::uint32_t n_heads, Act x) = 0;
  // out = W in, without bias, residual and norm, so that JoiningBackend can add terms to the product first (an adapter's change, outputs of
  // other ranks). The same holds for head_linear() and for the products of experts().
  virtual Status linear(const Matrix& weight, Act in, Act out) = 0;
  virtual Status add_bias(const Vector& bias, Act x) = 0;
  // Returns the rows of x for the caller to change; x counts as written by an operation. If `columns` is not 0, it becomes x's number of
  // columns, but the values stay where they are: the caller moves them from rows of HostRows::columns columns (the number before the call)
  // to rows of `columns` columns. Error: unsupported, the activations are not in the host's memory.
  virtual Result<HostRows> host_rows(Act x, std::size_t columns);
  // Replaces the tokens of the step's rows, for operations that look up tables. Called before keep_rows(). Default: the error of
  // host_rows().
  virtual Status set_tokens(std::span<const Token> tokens);
  // Gives every rank the rows of x that rank `from` has. Default: does nothing, because there is one rank.
  virtual Status share(std::uint32_t from, Act x);
  // x += y.
  virtual Status add(Act y, Act x) = 0;
  // Rotates the heads of x by their rows' positions, with table `table` of StepTables::ropes.
  virtual Status rope(std::uint32_t table, std::uint32_t n_heads, Act x) = 0;
  // Writes the rows' keys and values to the KV pages of their positions, in the cache's type.
  virtual Status append_kv(std::uint32_t layer, Act k, Act v) = 0;
  // out = softmax(scale q k) v over the visible keys of each row's sequence, read back from the pages. Scores are capped if the shape has a
  // softcap. Sink logits, if the shape has any, take part in the softmax. Counting votes changes no bit of `out`.
  virtual Status attention(const AttentionShape& shape, Act q, Act out) = 0;
  // x = act(x).
  virtual Status activate(ActivationKind kind, Act x) = 0;
  // up = act(gate) * up.
  virtual Status activate_gated(ActivationKind kind, Act gate, Act up) = 0;
  // out row i = in row list[i], where `list` is StepTables::selections[selection]. Later operations of the step work on these rows.
  virtual Status select_rows(std::size_t selection, Act in, Act out) = 0;
  // Drops all rows of the step except the wanted ones: row wanted[i] becomes row i, in `acts` and in all tables of the step (tokens,
  // sequences, positions, rotations). Other activations have no value afterwards. At most once a step, and only before select_rows().
  virtual Status keep_rows(std::span<const Act> acts) = 0;
  // Copies row `row` of an activation to the host.
  virtual Status read(Act x, std::uint32_t row, std::span<float> out) = 0;

  // --- Operations that a backend may lack: computes().
  // x = cap * tanh(x / cap).
  virtual Status softcap(float cap, Act x);
  // x *= 1 + rate * ln(1 + floor(position / length)), each row by its position.
  virtual Status scale_by_position(double rate, std::uint64_t length, Act x);

  // out = the sum over each row's experts e, in their order, of weight_e * down_e (act(gate_e in) * up_e in). Without gates: of weight_e *
  // down_e act(up_e in). Biases, if there are any, are added to each product. An expert's weights are read once for all rows that take the
  // expert. `router` is scratch.
  virtual Status experts(const Experts& of, Act in, Act router, Act out);
  // out = scale * the table's row for each row's token. For a row with an embedding of its own the token is RowTable::token.
  virtual Status gather(const Matrix& table, float scale, Act out);
  // out = columns [first, first + count) of in.
  virtual Status take_columns(Act in, std::uint64_t first, std::uint64_t count, Act out);
  // x *= sigmoid(gate). The gate has one number for each row [rows, 1].
  virtual Status weigh(Act gate, Act x);

  // x += table[segment]. `scratch` is as wide as x.
  virtual Status add_segments(const Matrix& table, Act scratch, Act x);

  // For draft heads, which need the hidden state of the token before. A layer stores hidden states as its keys. This operation first
  // stores each row of x, cut into heads, as the key of its position. Then it replaces the row by the key of the position before in its
  // sequence, which this step or an earlier step has written; by zeros at position 0.
  virtual Status shift_rows(std::uint32_t layer, Act x);

  // Latent attention. Head h of out = W_h (head h of in); `weight` has a matrix for each head.
  virtual Status head_linear(const Matrix& weight, Act in, Act out);
  // Norms `latent` [latent] and rotates `turned_k` [turned] and each head of `turned_q` [n_heads, turned], in place. Appends the key
  // [turned_k, latent] to the KV pages. Writes [turned_q, latent_q] of each head to q.
  virtual Status latent_append(const LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q);

  // Recurrent mixers. Rows of a sequence follow each other in a step, positions ascending. Earlier rows affect a row only through the
  // layer's state (KvView::state_before, state_after; backend/recurrent_state.hpp). Below, a (x) b is the outer product.
  // x = the convolution of x.
  virtual Status convolve(const Convolution& how, Act x);
  // Computes the gated delta rule (Yang et al. 2024). A row of `qkv` has q and k of each group [groups, keys] and v of each head
  // [heads, values]; q and k are divided by their length, q also by sqrt(keys). With decay = exp(rate * softplus(step + step_bias)) and
  // beta = sigmoid(betas):  S = decay * S;  S += k (x) (beta * (v - k S));  out = q S  [heads, values].
  // All activations but `out` are scratch.
  virtual Status delta_rule(const Recurrence& how, Act qkv, Act steps, Act betas, Act out);
  // Computes Mamba-2's selective scan (Dao and Gu 2024). A row of `xbc` has x of each head [heads, values] and B and C of each group
  // [groups, keys]. With step = softplus(steps + step_bias) and decay = exp(rate * step):  S = decay * S + B (x) (step * x);
  // out = C S + skip * x. `steps` and `decays` are scratch.
  virtual Status scan(const Recurrence& how, Act xbc, Act steps, Act decays, Act out);
  // Computes RMSNorm over each of n_groups equal groups of columns of x, in place. `weight` has a number for each column of x.
  virtual Status group_norm(const Vector& weight, float eps, std::uint32_t n_groups, Act x);
  // x *= y.
  virtual Status multiply(Act y, Act x);

  // Changes of products by adapters (backend/adapter_backend.hpp).
  // Returns the bytes that hold_low_rank() takes.
  [[nodiscard]] virtual std::uint64_t low_rank_bytes(const LowRankShape&) const noexcept { return 0; }
  // Keeps a change in the form that the kernels read. May be called while a step is computed.
  virtual Result<std::shared_ptr<const LowRank>> hold_low_rank(const LowRankShape& shape, const LowRankValues& values) const;
  // Adds adapters' changes to products, term by term. Before the call, a term's `out` has the product W x for each row x of `in`. A row
  // has the vectors of all matrices of the weight, one after another. A term names its rows by a list of StepTables::changes.
  virtual Status add_low_rank(std::span<const LowRankTerm> terms, Act in);
  // Adds changes of tables. In a term's `out`, each row is the table's row for the token; the change of this table row is added. Rows with
  // an embedding of their own do not change. `factor` multiplies the change, because `out` was already multiplied by it (Gemma).
  virtual Status add_low_rank_of_tokens(std::span<const LowRankTerm> terms, float factor);
  // Changes `product` [outputs], which is matrix `index` of the weight times `in` [inputs].
  virtual void change_product(const LowRank& change, float scale, std::uint32_t index, std::span<const float> in,
                              std::span<float> product) noexcept;

  // --- Fused operations. The default calls plain operations; an override must give the same bits. An operation never reads an
  // activation that it writes or uses as scratch, unless its comment says so.
  // out = W in (+ bias).
  virtual Status linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out);
  // x += W in (+ bias). `scratch` is as wide as x.
  virtual Status linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x);
  // For each of `parts`: out = W in (+ bias).
  virtual Status linear_group(std::span<const LinearPart> parts, Act in);
  // For each of `parts`: out = W norm(in) (+ bias). `scratch` is as wide as `in`.
  virtual Status norm_linear_group(const Norm& norm, Act in, Act scratch, std::span<const LinearPart> parts);
  // out = W activated(of) (+ bias). The gate and up of `of` are scratch.
  virtual Status activated_linear(const Activated& of, const Matrix& weight, const Vector* bias, Act out);
  // x += W activated(of) (+ bias). The gate and up of `of` are scratch, and so is `scratch`, which is as wide as x.
  virtual Status activated_linear_residual(const Activated& of, const Matrix& weight, const Vector* bias, Act scratch,
                                           Act x);
  // Norms and rotates the heads of q and k in place, in the order that the shape says, and norms the heads of v. A norm or a rope that the
  // shape does not have is left out. Then appends k and v to the KV pages. With queries_alone only q is read and written.
  virtual Status rope_append(const HeadShape& shape, Act q, Act k, Act v);

  // --- Drawing tokens on the device that has the logits.
  // Returns whether sample() is implemented.
  [[nodiscard]] virtual bool samples() const noexcept { return false; }
  // Makes draws [first, first + out.size()) of StepTables::draws, each from its row of `logits`; may wait for the device. Draws the tokens
  // that Sampler::sample() draws with the same steps and uniform numbers. Exception: rounding may choose another token if the uniform
  // number, or the p of a top-p step, is within 1e-6 of the border between two tokens. Precondition: at most WorkspaceShape::output_rows
  // rows. Errors: numeric, a logit is NaN or all are -inf (core/logit_errors.hpp).
  virtual Status sample(Act logits, std::size_t first, std::span<Token> out);
};

}  // namespace tessera::backend
