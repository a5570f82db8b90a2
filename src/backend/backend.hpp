// The one interface between the forward pass and whatever computes. A backend holds packed weights and a workspace of
// named activations; operations work on all rows of a step and see handles, never pointers of the caller's.
//
// A step: begin(tables) uploads tokens, positions, KV tables and lists of rows, operations follow in order, end() waits for
// them. The tables live until then. What lies between begin and end has fixed shapes for a fixed number of rows: it is what
// a CUDA graph captures. After every
// begin() comes an end(), also when an operation failed: then nothing is under way any more.
//
// Contract: what an operation computes for one row depends on that row's inputs and its sequence's KV alone; bit for bit,
// if the backend is invariant().
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
#include <tessera/extend/core/memory.hpp>
#include <tessera/extend/core/operation_kinds.hpp>
#include <tessera/extend/kv/kv_view.hpp>

#include "backend/sample_row.hpp"

namespace tessera::backend {

// The activations of a step, each [rows, columns] of f32. The backend owns them. An operation writes those activations
// alone that its signature names; the ones that it calls scratch have no value afterwards.
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
  per_layer,  // what each layer gets of a token  [rows, n_layers * per_layer_dim]
  logits,  // [output rows, vocab]
  count
};
inline constexpr std::size_t kActs = static_cast<std::size_t>(Act::count);

// Packed weights. Made by a backend, used with it alone, alive as long as it.
struct Matrix;  // [outputs, inputs]
struct Vector;  // [n], f32

struct MatrixShape {
  DType dtype = DType::f32;
  std::uint64_t outputs = 0;
  std::uint64_t inputs = 0;
  std::uint64_t count = 1;  // matrices of this shape, one behind another: a layer's experts

  [[nodiscard]] std::uint64_t rows() const noexcept { return count * outputs; }
};

// Fills `out` with rows [first, first + count) in the file's format. A backend reads each row once, in ascending order.
using RowReader = std::function<Status(std::uint64_t first, std::uint64_t count, std::span<std::byte> out)>;

struct Norm {
  NormKind kind = NormKind::rms;
  const Vector* weight = nullptr;  // given
  const Vector* bias = nullptr;  // or none
  float eps = 0.0f;
};

// act(up), or with a gate act(gate) * up (of clamped_swiglu as it says). Both are scratch of the operation that multiplies it.
struct Activated {
  ActivationKind kind = ActivationKind::silu;
  Act gate = Act::count;  // none
  Act up = Act::up;
};

// Which experts a row takes, by its router's logits [n_experts], and with what weights. Each expert has a score: its share
// of the softmax, its sigmoid, or (chosen_softmax) its logit. A row takes the experts whose scores, with the biases, are
// the highest, among equals the first; from the groups of neighbours whose two highest such scores have the largest sum, or whose
// highest one is the largest.
// A weight is the score, without the bias, or (chosen_softmax) its share of the softmax over the row's own experts;
// divided by the sum of the row's, if they are to be; times the scale; times the
// expert's own.
struct Routing {
  RoutingKind kind = RoutingKind::softmax;
  std::uint32_t n_used = 0;
  std::uint32_t n_groups = 1, n_used_groups = 1;
  GroupScore group_score = GroupScore::two_best;
  const Vector* bias = nullptr;  // [n_experts], or none
  const Vector* scales = nullptr;  // likewise: the experts' own
  bool renormalises = false;
  float scale = 1.0f;
};

// Joins the products of experts, each between the product and its bias. Called in the order of experts and rows, while
// experts() computes.
class ExpertProducts {
 public:
  virtual ~ExpertProducts() = default;
  // Row `row` of the step takes this expert: matrix `expert` of `weight` times `in` [inputs] is `product` [outputs]. What join()
  // leaves in `product` goes on.
  virtual void join(const Matrix& weight, std::uint32_t expert, std::uint32_t row, std::span<const float> in,
                    std::span<float> product) noexcept = 0;
};

// A layer's experts: each a gated FFN, or a plain one. What they read and give has `width` columns.
struct Experts {
  const Matrix* gate = nullptr;  // n_experts of [ffn_dim, width], or none
  const Matrix* up = nullptr;    // n_experts of [ffn_dim, width]
  const Matrix* down = nullptr;  // n_experts of [width, ffn_dim]
  const Vector* gate_bias = nullptr;  // [n_experts, ffn_dim], or none
  const Vector* up_bias = nullptr;
  const Vector* down_bias = nullptr;  // [n_experts, width], or none
  ActivationKind activation = ActivationKind::silu;
  Routing routing;
  ExpertProducts* behind = nullptr;  // or nothing joins
};

// How heads rotate with their positions: the first 2 * frequencies.size() elements of a head do. No frequencies: none.
struct RopeTable {
  RopePairs pairs = RopePairs::interleaved;
  std::span<const double> frequencies;  // radians a position of each pair
  float magnitude = 1.0f;               // what rotates is multiplied by it
};

// A row that votes: of each key that it sees, the squares of the weights that its query heads give to it are added up, in units
// of 1 / kVoteUnits. Squares, so that a head that looks at few keys outweighs many that look at all a little. As sums of
// integers they do not depend on the order of rows, layers and tasks.
struct RowVotes {
  std::uint32_t row = 0;  // of the step
  std::span<std::uint64_t> of_keys;  // [position + 1] or more; rows of one sequence may have the same
};
inline constexpr std::uint32_t kVoteUnits = 1u << 18;

// Attention of one layer.
struct AttentionShape {
  std::uint32_t layer = 0;  // in the KV view
  std::uint32_t n_heads = 0;
  std::uint32_t window = 0;  // 0: none
  std::uint32_t globals = 0;  // with a window: the first so many keys are seen too
  float scale = 1.0f;
  float softcap = 0.0f;           // scores s become softcap * tanh(s / softcap); 0: none
  const Vector* sinks = nullptr;  // [n_heads]: a logit that joins each head's softmax and has no value; or none
  bool counts_votes = false;      // of StepTables::votes
};

// A convolution along each sequence, of each column by itself: a row sees its own input and those of the `width` - 1 rows before it.
struct Convolution {
  std::uint32_t layer = 0;        // in the KV view
  const Vector* weight = nullptr;  // [width][columns], the row's own last
  const Vector* bias = nullptr;    // [columns], or none
  bool silu = false;               // of what comes out
};

// A recurrence along each sequence. Each head has a state S [keys][values]; `group_order` says which group's keys it has.
struct Recurrence {
  std::uint32_t layer = 0;  // in the KV view
  std::uint32_t heads = 0, groups = 0;
  std::uint32_t keys = 0, values = 0;
  StateGroups group_order = StateGroups::blocks;
  std::uint64_t state_offset = 0;     // where the heads' states begin in the layer's, in floats
  const Vector* rate = nullptr;       // [heads]: of decay; below 0
  const Vector* step_bias = nullptr;  // [heads]
  const Vector* skip = nullptr;       // [heads], of a scan
};

// Latent attention of one layer (DeepSeek-V2 2024): the KV head that all query heads share is what rotates, then the latent, which
// is the value too.
struct LatentShape {
  std::uint32_t layer = 0;  // in the KV view
  std::uint32_t n_heads = 0;
  const Vector* norm = nullptr;  // [latent]
  float eps = 0.0f;
  std::uint32_t rope = kNoRope;  // index into the step's tables
};

// What some models have and some backends do not compute.
enum class Part : std::uint8_t {
  softcap, temperature, experts, score_softcap, sinks, recurrence, latent, value_norm, shared_keys, per_layer_inputs,
  weight_scales, global_tokens,
  votes,    // no model's: what a budget of tokens asks for
  branches  // nor this one: RowTable::n_also
};

// Tokens of a sequence that change their place; all pages involved are writable.
struct KvMove {
  std::uint64_t from = 0, to = 0, count = 0;
  std::span<const std::uint64_t> first = {};  // [group]: what is before this position stays where it is; empty: nothing

  // How many of the first tokens stay, of a group.
  [[nodiscard]] std::uint64_t skipped(std::size_t group) const noexcept {
    if (first.empty() || first[group] <= from) return 0;
    return first[group] - from < count ? first[group] - from : count;
  }
};

// What the workspace must hold at most.
struct WorkspaceShape {
  std::uint32_t rows = 0;         // of a step
  std::uint32_t output_rows = 0;  // of logits at once
  std::uint64_t columns[kActs] = {};
  std::uint32_t ropes = 0;          // tables of a step
  std::uint32_t rope_dims = 0;      // elements of a head that rotate, of all tables together
  std::uint32_t max_heads = 0;      // query heads of a layer
  std::uint32_t max_group = 0;      // query heads a KV head
  std::uint32_t max_key_dim = 0;
  std::uint32_t max_value_dim = 0;
  std::uint64_t head_inputs = 0;  // of one matrix that head_linear() multiplies; 0: there are none
  // Of rows that vote: at most so many of a step, and the keys that one sees. 0: none does.
  std::uint32_t voters = 0;
  std::uint64_t vote_keys = 0;
  // Of layers with experts.
  std::uint32_t n_experts = 0, used_experts = 0;
  std::uint64_t expert_inputs = 0, expert_dim = 0;  // an expert's width and ffn_dim
};

struct RowTable {
  const float* embedding = nullptr;  // [d_model], instead of a token
  Token token = 0;                   // beside an embedding: what gather() takes; 0 where there is none
  std::uint32_t sequence = 0;        // index into StepTables::sequences
  // Sequences [also, also + n_also) get the row's key and value too, at the same position: branches of its own sequence, which
  // have copies of the page. Where they have the page itself, it is written again with the same bits.
  std::uint32_t also = 0, n_also = 0;
  std::uint64_t position = 0;
};

struct StepTables {
  std::span<const RowTable> rows;
  std::span<const KvView> sequences;
  std::span<const RopeTable> ropes;  // operations name one by its index
  std::span<const RowVotes> votes = {};  // until keep_rows(), which ends the voting; at most WorkspaceShape::voters
  std::span<const std::uint32_t> wanted = {};    // the rows that keep_rows() goes on with, ascending
  std::span<const std::uint32_t> selected = {};  // lists of rows for select_rows(), one behind another
};

// One line of explain(): which kernel does what. An empty dtype is the KV cache's. `fallback` says why a slower kernel
// than the machine could run was taken; empty if none was.
struct Explanation {
  std::string operation, kernel, family, dtype, fallback = {};
};

// One of several products of the same activation.
struct LinearPart {
  const Matrix* weight = nullptr;
  const Vector* bias = nullptr;  // or none
  Act out = Act::count;
};

// What happens to q and k between their products and attention.
struct HeadShape {
  std::uint32_t layer = 0;  // in the KV view
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  const Vector* q_norm = nullptr;  // or none
  const Vector* k_norm = nullptr;
  const Vector* v_norm = nullptr;  // of each head
  bool norms_together = false;     // over all heads of a row, not over each
  bool norms_behind_rope = false;  // what is normed has been rotated
  float eps = 0.0f;
  std::uint32_t rope = kNoRope;    // index into the step's tables
  bool queries_alone = false;      // the pages have keys and values already, which are another layer's
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual std::vector<Explanation> explain() const = 0;
  // Whether a row's bits are the same whatever rows are computed with it.
  [[nodiscard]] virtual bool invariant() const noexcept { return true; }
  // Whether weights, workspace and KV pages are in a device's memory, not the host's.
  [[nodiscard]] virtual bool on_device() const noexcept { return false; }
  // Where KV pages live; nullptr: the host's memory. Shared, for a copy of a session's cache may outlive the backend.
  [[nodiscard]] virtual std::shared_ptr<Memory> kv_memory() const noexcept { return nullptr; }

  // Models with a part that it does not compute are refused.
  [[nodiscard]] virtual bool computes(Part) const noexcept { return true; }
  // Likewise with an activation that it does not compute.
  [[nodiscard]] virtual bool activates(ActivationKind) const noexcept { return true; }

  // Whether matrices in a weight format can be held; loading asks first.
  [[nodiscard]] virtual bool holds(DType) const noexcept { return true; }
  // Whether keys and values of a KV type are written and read.
  [[nodiscard]] virtual bool holds_kv(DType) const noexcept { return true; }

  // --- Loading: reserve once, then add exactly what was planned.
  [[nodiscard]] virtual std::uint64_t matrix_bytes(const MatrixShape& shape) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t vector_bytes(std::uint64_t n) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t staging_bytes(const MatrixShape& shape) const noexcept = 0;  // while packing
  [[nodiscard]] virtual std::uint64_t workspace_bytes(const WorkspaceShape& shape) const noexcept = 0;
  // Of the host's memory, if the workspace is on a device.
  [[nodiscard]] virtual std::uint64_t host_workspace_bytes(const WorkspaceShape&) const noexcept { return 0; }
  virtual Status reserve_weights(std::uint64_t bytes, std::uint64_t staging) = 0;
  virtual Status reserve_workspace(const WorkspaceShape& shape) = 0;
  virtual Result<const Matrix*> add_matrix(const MatrixShape& shape, const RowReader& read) = 0;
  virtual Result<const Vector*> add_vector(std::span<const float> values) = 0;
  // Right after add_matrix(): what comes of multiplying by matrix i of `weight` is multiplied by factors[i], before bias and
  // residual. For linear() and experts() and what is made of them. Takes vector_bytes(factors.size()). computes() says who can.
  virtual Status scale_products(const Matrix& weight, std::span<const float> factors);
  virtual void finish_loading() noexcept = 0;  // gives the staging memory back

  // Moves the tokens at positions [from, from + count) to [to, to + count), to < from, in all layers of `kv`, but for
  // what a group of them skips. Values keep their bits; keys are rotated back by from - to positions, and keep theirs in
  // layers without rope. All or nothing. `ropes`: each layer's  [n_layers].
  virtual Status move_tokens(const KvView& kv, const KvMove& move, std::span<const RopeTable> ropes) = 0;

  // --- A step. One at a time per backend; the engine queues them.
  virtual Status begin(const StepTables& tables) = 0;
  virtual Status end() = 0;

  // x = the embedding of each row's token * scale, or the row's own embedding as it is.
  virtual Status embed(const Matrix& table, float scale, Act x) = 0;
  // x += table[position]. `scratch` is as wide as x.
  virtual Status add_positions(const Matrix& table, Act scratch, Act x) = 0;
  // x *= factor.
  virtual Status scale(float factor, Act x) = 0;
  // out = norm(in) * weight (+ bias); `out` may be `in`.
  virtual Status norm(const Norm& norm, Act in, Act out) = 0;
  // RMSNorm over each head of x  [rows, n_heads, head_dim], in place.
  virtual Status head_norm(const Vector& weight, float eps, std::uint32_t n_heads, Act x) = 0;
  // out = W in: the product alone. What joins it (an adapter's term, outputs of other ranks) comes behind it, before bias, residual
  // and norm: backend/joining_backend.hpp. The same holds for head_linear(), and for the products of experts().
  virtual Status linear(const Matrix& weight, Act in, Act out) = 0;
  virtual Status add_bias(const Vector& bias, Act x) = 0;
  // x += y.
  virtual Status add(Act y, Act x) = 0;
  // Rotates the heads of x by their rows' positions, as the step's table of that index says.
  virtual Status rope(std::uint32_t table, std::uint32_t n_heads, Act x) = 0;
  // Writes the rows' keys and values to the KV pages of their positions, in the cache's type.
  virtual Status append_kv(std::uint32_t layer, Act k, Act v) = 0;
  // out = softmax(scale q k) v over the visible keys of each row's sequence, read back from the pages; with a softcap of the
  // scores and sinks, if the shape has them. Votes, where they are counted, change no bit of it.
  virtual Status attention(const AttentionShape& shape, Act q, Act out) = 0;
  // x = act(x).
  virtual Status activate(ActivationKind kind, Act x) = 0;
  // up = act(gate) * up.
  virtual Status activate_gated(ActivationKind kind, Act gate, Act up) = 0;
  // out row i = in row selected[first + i], i < count; later operations of the step work on `count` rows.
  virtual Status select_rows(std::size_t first, std::size_t count, Act in, Act out) = 0;
  // The step goes on with its wanted rows alone: what was row wanted[i] is now row i, in `acts` and in all tables of the step
  // (tokens, sequences, positions, rotations). Other activations have no value afterwards. At most once a step.
  virtual Status keep_rows(std::span<const Act> acts) = 0;
  // Copies row `row` of an activation to the host.
  virtual Status read(Act x, std::uint32_t row, std::span<float> out) = 0;

  // --- Of those that a backend may be without: computes().
  // x = cap * tanh(x / cap).
  virtual Status softcap(float cap, Act x);
  // x *= 1 + rate * ln(1 + floor(position / length)), each row by its position.
  virtual Status scale_by_position(double rate, std::uint64_t length, Act x);

  // `router` is scratch. out = the sum over each row's experts e, in their order, of weight_e * down_e (act(gate_e in) * up_e in),
  // or of weight_e * down_e act(up_e in) if they have no gate; each product with its bias, if there are biases. An expert's
  // weights are read once for all rows that take it.
  virtual Status experts(const Experts& of, Act in, Act router, Act out);
  // out = the table's row of each row's token * scale, also of a row with an embedding of its own.
  virtual Status gather(const Matrix& table, float scale, Act out);
  // out = columns [first, first + count) of in.
  virtual Status take_columns(Act in, std::uint64_t first, std::uint64_t count, Act out);
  // x *= sigmoid(gate), a number a row [rows, 1].
  virtual Status weigh(Act gate, Act x);

  // Latent attention. out = of each head h, W_h (head h of in): `weight` is several matrices, one a head.
  virtual Status head_linear(const Matrix& weight, Act in, Act out);
  // Norms `latent` [latent] and rotates `turned_k` [turned] and each head of `turned_q` [n_heads, turned], in place. Appends the key
  // [turned_k, latent] to the KV pages; q = of each head [turned_q, latent_q].
  virtual Status latent_append(const LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q);

  // Recurrent mixers. Rows of a sequence follow each other in a step, positions ascending. What a row sees of the rows before
  // it is in the layer's state (KvView::state_before, state_after; backend/recurrent_state.hpp).
  // x = the convolution of x.
  virtual Status convolve(const Convolution& how, Act x);
  // The gated delta rule (Yang et al. 2024). Of a row, `qkv` has q and k of each group [groups, keys] and v of each head [heads, values];
  // q and k count divided by their length, q also by sqrt(keys). With decay = exp(rate * softplus(step + step_bias)) and
  // beta = sigmoid(betas):  S = decay * S;  S += k (x) (beta * (v - k S));  out = q S  [heads, values].
  // All but `out` are scratch.
  virtual Status delta_rule(const Recurrence& how, Act qkv, Act steps, Act betas, Act out);
  // Mamba-2's selective scan (Dao and Gu 2024). Of a row, `xbc` has x of each head [heads, values] and B and C of each group [groups, keys].
  // With step = softplus(steps + step_bias) and decay = exp(rate * step):  S = decay * S + B (x) (step * x);
  // out = C S + skip * x. `steps` and `decays` are scratch.
  virtual Status scan(const Recurrence& how, Act xbc, Act steps, Act decays, Act out);
  // RMSNorm over each of n_groups equal parts of x, in place; weights are as many as x has columns.
  virtual Status group_norm(const Vector& weight, float eps, std::uint32_t n_groups, Act x);
  // x *= y.
  virtual Status multiply(Act y, Act x);

  // --- Fused operations: the default is the plain ones, and an override equals it bit for bit. No activation that they
  // read is one that they write or use as scratch, unless a comment says so.
  // out = W in (+ bias).
  virtual Status linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out);
  // x += W in (+ bias). `scratch` is as wide as x.
  virtual Status linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x);
  // Each part: out = W in (+ bias).
  virtual Status linear_group(std::span<const LinearPart> parts, Act in);
  // Each part: out = W norm(in) (+ bias). `scratch` is as wide as `in`.
  virtual Status norm_linear_group(const Norm& norm, Act in, Act scratch, std::span<const LinearPart> parts);
  // out = W (the activated) (+ bias). The gate and up of `of` are scratch.
  virtual Status activated_linear(const Activated& of, const Matrix& weight, const Vector* bias, Act out);
  // x += W (the activated) (+ bias). The gate and up of `of` are scratch, and `scratch`, as wide as x.
  virtual Status activated_linear_residual(const Activated& of, const Matrix& weight, const Vector* bias, Act scratch,
                                           Act x);
  // In place: norms the heads of q and k, if they have norms, and rotates them, if there is a rope, or the other way
  // round; norms those of v, if they have a norm. Then appends k and v to the KV pages. With queries_alone it looks at q only.
  virtual Status rope_append(const HeadShape& shape, Act q, Act k, Act v);

  // --- Drawing tokens where the logits are. Whoever says samples() has sample().
  [[nodiscard]] virtual bool samples() const noexcept { return false; }
  // out[i]: the token that rows[i] draws from its row of `logits`; may wait for the device. As Sampler::sample() draws
  // with the same steps and uniform number, but for u or p within rounding (1e-6) of a border between tokens, and with
  // its errors: numeric where a logit is NaN or all are -inf (core/logit_errors.hpp). At most
  // WorkspaceShape::output_rows rows.
  virtual Status sample(Act logits, std::span<const SampleRow> rows, std::span<Token> out);
};

}  // namespace tessera::backend
