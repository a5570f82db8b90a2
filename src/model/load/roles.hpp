// The roles of tensors: what each tensor does in a model. The table has a row for each role, with the tensor's name, its owner (the
// model or each layer), and its shape.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/extend/model/model_spec.hpp>

namespace tessera {

enum class Role : std::uint8_t {
  token_embd, position_embd, segment_embd, embd_norm, embd_norm_bias, output_norm, output_norm_bias, output_norm_early, output, output_bias, rope_freqs, rope_factors_short, rope_factors_long,
  per_layer_token_embd, per_layer_model_proj, per_layer_proj_norm,
  embd_inner, embd_outer, head_in, head_in_bias, head_norm, head_norm_bias, head_out, head_out_bias,
  attn_norm, attn_norm_bias, attn_norm_2, attn_norm_2_bias,
  attn_qkv, attn_qkv_bias, attn_q, attn_q_bias, attn_k, attn_k_bias, attn_v, attn_v_bias,
  attn_q_gated, attn_gate,
  attn_q_norm, attn_k_norm, attn_sinks, attn_output, attn_output_bias, attn_post_norm, attn_sum_norm, attn_sum_norm_bias,
  latent_q, latent_q_a, latent_q_a_norm, latent_q_b, latent_q_plain, latent_q_turned,
  latent_kv_a, latent_kv, latent_k_turned, latent_kv_norm, latent_k_b, latent_v_b, latent_output,
  state_in, state_gate, state_mixed, state_steps_betas, state_steps, state_betas, state_conv, state_conv_bias,
  state_step_bias, delta_rate, scan_rate, scan_skip, delta_norm, scan_norm, state_out,
  short_in, short_before, short_behind, short_mixed, short_conv, short_out,
  ffn_norm, ffn_norm_bias, ffn_norm_late, ffn_gate_up, ffn_gate, ffn_gate_bias, ffn_up, ffn_up_bias, ffn_down, ffn_down_bias, ffn_post_norm, ffn_sum_norm, ffn_sum_norm_bias,
  router, router_bias, router_norm, choice_bias,
  experts_in, experts_out, expert_norm, experts_gate_up, experts_gate, experts_gate_bias, experts_up, experts_up_bias, experts_down, experts_down_bias, experts_scale,
  dense_post_norm, experts_post_norm,
  shared_gate, shared_up, shared_down, shared_weight,
  per_layer_gate, per_layer_proj, per_layer_post_norm, output_scale,
  mtp_token_norm, mtp_hidden_norm, mtp_in, mtp_token_in, mtp_hidden_in, mtp_token_embd, mtp_output_norm, mtp_output,
  medusa_block, medusa_block_bias, medusa_output,
  eagle_in_bias, eagle_features, eagle_low_in, eagle_mid_in, eagle_high_in,
  eagle_q, eagle_q_token, eagle_q_hidden, eagle_k, eagle_k_token, eagle_k_hidden, eagle_v, eagle_v_token, eagle_v_hidden,
  count
};
inline constexpr std::size_t kRoles = static_cast<std::size_t>(Role::count);

// The owner of a role's tensors: the model (one tensor), each layer (layers of draft heads too), or each layer of draft heads only.
enum class Owner : std::uint8_t { model, layer, draft_head };

// A function that computes one dimension of a tensor from the specs of the model and of the layer.
using Extent = std::uint64_t (*)(const ModelSpec&, const LayerSpec&) noexcept;

// A role and its tensors. Names are the library's own, and are spelled as in GGUF ("standardized tensor names"). Every ModelSource lists its
// tensors under these names, whatever names its files have.
struct RoleRow {
  Role role;
  Owner owner;
  std::string_view name;     // "attn_q.weight"; tensor_name() adds the layer's number: "blk.3.attn_q.weight"
  Extent inputs;             // length of a row of the matrix, or of the vector
  Extent outputs = nullptr;  // number of rows of the matrix; nullptr: the tensor is a vector
  // If the tensor fuses several parts (Q, K and V, for example): the roles of the parts, in order. The parts are successive rows of a
  // matrix, or successive values of a vector.
  std::array<Role, 3> parts = {Role::count, Role::count, Role::count};
  Extent count = nullptr;  // number of matrices (or vectors) of equal shape in the tensor (one for each expert); nullptr: 1
  // If the rows of a fused matrix's parts alternate: the number of turns. Example: 8, if for each of 8 heads first the head's query rows
  // come and then its gate rows (q0 g0 q1 g1 ...). nullptr: 1, each part is one range of rows.
  Extent turns = nullptr;
  bool by_element = false;  // true: the tensor has the first element of all vectors, then the second of all, ...
  bool by_columns = false;  // true: the parts of a fused matrix are ranges of columns instead of rows
  bool is_norm = false;     // true: the tensor is the weights of a norm, which multiply the normalised values

  [[nodiscard]] constexpr bool is_matrix() const noexcept { return outputs != nullptr; }
  [[nodiscard]] constexpr bool is_fused() const noexcept { return parts[0] != Role::count; }
  // Returns the name of this role's tensor: "blk.3.attn_q.weight" for layer 3. `layer` is not used if the model owns the tensor.
  [[nodiscard]] std::string tensor_name(std::uint32_t layer = 0) const;
};

namespace detail {

// Returns the number of the layer in a tensor's name: 12 for "blk.12.attn_k.weight". nullopt: the name is not of a layer's tensor.
[[nodiscard]] std::optional<std::uint32_t> layer_of(std::string_view tensor_name) noexcept;

}  // namespace detail

namespace extent {

inline constexpr Extent width = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t { return m.d_model; };
inline constexpr Extent vocabulary = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t { return m.vocab_size; };
// Number of different tokens that draft heads can guess.
inline constexpr Extent guessed = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t {
  return m.draft_heads.vocab_size != 0 ? m.draft_heads.vocab_size : m.vocab_size;
};
inline constexpr Extent positions = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t { return m.context; };
inline constexpr Extent segments = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t { return m.n_segments; };
inline constexpr Extent embedding_inner = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t { return m.embedding_inner; };
inline constexpr Extent embedding = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t { return m.embedding_dim; };
inline constexpr Extent scores = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t { return m.n_scores; };
inline constexpr Extent rope_pairs = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t {
  return m.ropes.empty() ? 0 : m.ropes.front().dim / 2;
};
inline constexpr Extent heads = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.n_heads; };
inline constexpr Extent queries = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return std::uint64_t{l.n_heads} * l.key_dim;
};
inline constexpr Extent keys = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return std::uint64_t{l.n_kv_heads} * l.key_dim;
};
inline constexpr Extent values = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return std::uint64_t{l.n_kv_heads} * l.value_dim;
};
inline constexpr Extent attended = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return std::uint64_t{l.n_heads} * l.value_dim;
};
inline constexpr Extent projected = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return queries(m, l) + keys(m, l) + values(m, l);
};
// query_norm, key_norm: number of weights of the norm of queries or keys. This is the number of elements of one head, or of all heads.
inline constexpr Extent query_norm = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return l.head_norms == HeadNorms::together ? queries(m, l) : l.key_dim;
};
inline constexpr Extent key_norm = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return l.head_norms == HeadNorms::together ? keys(m, l) : l.key_dim;
};
inline constexpr Extent gate_and_up = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return 2 * std::uint64_t{l.ffn_dim};
};
inline constexpr Extent experts = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.n_experts; };
// Width of the experts' input and output. (In some models it is narrower than d_model.)
inline constexpr Extent expert_width = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return l.expert_width != 0 ? l.expert_width : m.d_model;
};
inline constexpr Extent shared = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.shared_dim; };
inline constexpr Extent one = [](const ModelSpec&, const LayerSpec&) noexcept -> std::uint64_t { return 1; };
inline constexpr Extent ffn = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.ffn_dim; };
inline constexpr Extent queries_and_gate = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return queries(m, l) + attended(m, l);
};
// Dimensions of latent attention.
inline constexpr Extent latent = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.value_dim; };
inline constexpr Extent turned = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.key_dim - l.value_dim; };
inline constexpr Extent latent_and_turned = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.key_dim; };
inline constexpr Extent plain = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.plain_dim; };
inline constexpr Extent all_plain = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return std::uint64_t{l.n_heads} * l.plain_dim;
};
inline constexpr Extent all_turned = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t { return l.n_heads * turned(m, l); };
inline constexpr Extent plain_and_turned = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return all_plain(m, l) + all_turned(m, l);
};
inline constexpr Extent query_rank = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.query_rank; };
inline constexpr Extent query_inputs = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return l.query_rank != 0 ? l.query_rank : m.d_model;
};
inline constexpr Extent head_value = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.head_value_dim; };
inline constexpr Extent head_values = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return std::uint64_t{l.n_heads} * l.head_value_dim;
};
// Dimensions of recurrent mixers.
inline constexpr Extent state_heads = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.state_heads; };
inline constexpr Extent state_groups = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.state_groups; };
inline constexpr Extent state_values = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.state_values; };
inline constexpr Extent all_values = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return std::uint64_t{l.state_heads} * l.state_values;
};
inline constexpr Extent group_values = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return l.state_groups == 0 ? 0 : all_values(m, l) / l.state_groups;
};
// Number of columns that the convolution of a recurrent mixer gets: the values of all heads, and the queries and the keys of all groups,
// which are of equal size (Mamba-2 calls the keys B and the queries C).
inline constexpr Extent mixed = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return all_values(m, l) + 2 * std::uint64_t{l.state_groups} * l.state_keys;
};
inline constexpr Extent all_of_state = [](const ModelSpec& m, const LayerSpec& l) noexcept -> std::uint64_t {
  return all_values(m, l) + mixed(m, l) + l.state_heads;
};
inline constexpr Extent steps_and_betas = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return 2 * std::uint64_t{l.state_heads};
};
inline constexpr Extent convolved = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t { return l.conv_width; };
inline constexpr Extent two_widths = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t {
  return 2 * std::uint64_t{m.d_model};
};
inline constexpr Extent three_widths = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t {
  return 3 * std::uint64_t{m.d_model};
};
// Inner width of the dense FFN, which all tokens pass (in contrast to an expert).
inline constexpr Extent dense = [](const ModelSpec&, const LayerSpec& l) noexcept -> std::uint64_t {
  return l.ffn == Ffn::dense_and_experts ? l.shared_dim : l.ffn_dim;
};
inline constexpr Extent per_layer = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t { return m.per_layer_dim; };
inline constexpr Extent all_per_layer = [](const ModelSpec& m, const LayerSpec&) noexcept -> std::uint64_t {
  return std::uint64_t{m.per_layer_dim} * m.n_layers();
};

}  // namespace extent

inline constexpr RoleRow kRoleTable[] = {
    {Role::token_embd, Owner::model, "token_embd.weight", extent::width, extent::vocabulary},
    {Role::position_embd, Owner::model, "position_embd.weight", extent::width, extent::positions},
    {Role::segment_embd, Owner::model, "token_types.weight", extent::width, extent::segments},
    {.role = Role::embd_norm, .owner = Owner::model, .name = "token_embd_norm.weight", .inputs = extent::width, .is_norm = true},
    {Role::embd_norm_bias, Owner::model, "token_embd_norm.bias", extent::width},
    {.role = Role::output_norm, .owner = Owner::model, .name = "output_norm.weight", .inputs = extent::width, .is_norm = true},
    {Role::output_norm_bias, Owner::model, "output_norm.bias", extent::width},
    // LFM2's converter names the final norm as if it were a norm of the embedding.
    {.role = Role::output_norm_early, .owner = Owner::model, .name = "token_embd_norm.weight", .inputs = extent::width,
     .parts = {Role::output_norm, Role::count, Role::count}, .is_norm = true},
    {Role::output, Owner::model, "output.weight", extent::width, extent::vocabulary},
    {Role::output_bias, Owner::model, "output.bias", extent::vocabulary},
    {Role::rope_freqs, Owner::model, "rope_freqs.weight", extent::rope_pairs},  // divisors of the frequencies of the first rope
    // LongRoPE: the frequencies are divided by these factors.
    {Role::rope_factors_short, Owner::model, "rope_factors_short.weight", extent::rope_pairs},
    {Role::rope_factors_long, Owner::model, "rope_factors_long.weight", extent::rope_pairs},
    {Role::per_layer_token_embd, Owner::model, "per_layer_token_embd.weight", extent::all_per_layer, extent::vocabulary},
    {Role::per_layer_model_proj, Owner::model, "per_layer_model_proj.weight", extent::width, extent::all_per_layer},
    {.role = Role::per_layer_proj_norm, .owner = Owner::model, .name = "per_layer_proj_norm.weight", .inputs = extent::per_layer,
     .is_norm = true},
    // Matrices after the final norm that compute a row's embedding (EmbeddingGemma).
    {Role::embd_inner, Owner::model, "dense_2.weight", extent::width, extent::embedding_inner},
    {Role::embd_outer, Owner::model, "dense_3.weight", extent::embedding_inner, extent::embedding},
    // The head that ranks pairs of texts or classifies texts: out(norm(act(in(x)))). Some models lack `in`, the norm or the biases.
    {Role::head_in, Owner::model, "cls.weight", extent::width, extent::width},
    {Role::head_in_bias, Owner::model, "cls.bias", extent::width},
    {.role = Role::head_norm, .owner = Owner::model, .name = "cls.norm.weight", .inputs = extent::width, .is_norm = true},
    {Role::head_norm_bias, Owner::model, "cls.norm.bias", extent::width},
    {Role::head_out, Owner::model, "cls.output.weight", extent::width, extent::scores},
    {Role::head_out_bias, Owner::model, "cls.output.bias", extent::scores},
    {.role = Role::attn_norm, .owner = Owner::layer, .name = "attn_norm.weight", .inputs = extent::width, .is_norm = true},
    {Role::attn_norm_bias, Owner::layer, "attn_norm.bias", extent::width},
    {.role = Role::attn_norm_2, .owner = Owner::layer, .name = "attn_norm_2.weight", .inputs = extent::width, .is_norm = true},
    {Role::attn_norm_2_bias, Owner::layer, "attn_norm_2.bias", extent::width},
    {Role::attn_qkv, Owner::layer, "attn_qkv.weight", extent::width, extent::projected,
     {Role::attn_q, Role::attn_k, Role::attn_v}},
    {Role::attn_qkv_bias, Owner::layer, "attn_qkv.bias", extent::projected, nullptr,
     {Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias}},
    {Role::attn_q, Owner::layer, "attn_q.weight", extent::width, extent::queries},
    {Role::attn_q_bias, Owner::layer, "attn_q.bias", extent::queries},
    {Role::attn_k, Owner::layer, "attn_k.weight", extent::width, extent::keys},
    {Role::attn_k_bias, Owner::layer, "attn_k.bias", extent::keys},
    {Role::attn_v, Owner::layer, "attn_v.weight", extent::width, extent::values},
    {Role::attn_v_bias, Owner::layer, "attn_v.bias", extent::values},
    // The matrix has, for each head, first the rows of its query, then the rows of the gate of its output.
    {.role = Role::attn_q_gated, .owner = Owner::layer, .name = "attn_q.weight", .inputs = extent::width,
     .outputs = extent::queries_and_gate, .parts = {Role::attn_q, Role::attn_gate, Role::count}, .turns = extent::heads},
    {Role::attn_gate, Owner::layer, "attn_gate.weight", extent::width, extent::attended},
    {.role = Role::attn_q_norm, .owner = Owner::layer, .name = "attn_q_norm.weight", .inputs = extent::query_norm, .is_norm = true},
    {.role = Role::attn_k_norm, .owner = Owner::layer, .name = "attn_k_norm.weight", .inputs = extent::key_norm, .is_norm = true},
    {Role::attn_sinks, Owner::layer, "attn_sinks.weight", extent::heads},
    {Role::attn_output, Owner::layer, "attn_output.weight", extent::attended, extent::width},
    {Role::attn_output_bias, Owner::layer, "attn_output.bias", extent::width},
    {.role = Role::attn_post_norm, .owner = Owner::layer, .name = "post_attention_norm.weight", .inputs = extent::width, .is_norm = true},
    // Norms of the residual stream after a half of a layer was added to it (as in the first Transformer; Vaswani et al. 2017).
    {.role = Role::attn_sum_norm, .owner = Owner::layer, .name = "attn_output_norm.weight", .inputs = extent::width, .is_norm = true},
    {Role::attn_sum_norm_bias, Owner::layer, "attn_output_norm.bias", extent::width},
    // Latent attention. The matrix has, for each head, first the rows of the query's plain part, then the rows of the turned part.
    {.role = Role::latent_q, .owner = Owner::layer, .name = "attn_q.weight", .inputs = extent::query_inputs,
     .outputs = extent::plain_and_turned, .parts = {Role::latent_q_plain, Role::latent_q_turned, Role::count}, .turns = extent::heads},
    {Role::latent_q_a, Owner::layer, "attn_q_a.weight", extent::width, extent::query_rank},
    {.role = Role::latent_q_a_norm, .owner = Owner::layer, .name = "attn_q_a_norm.weight", .inputs = extent::query_rank, .is_norm = true},
    {.role = Role::latent_q_b, .owner = Owner::layer, .name = "attn_q_b.weight", .inputs = extent::query_inputs,
     .outputs = extent::plain_and_turned, .parts = {Role::latent_q_plain, Role::latent_q_turned, Role::count}, .turns = extent::heads},
    {Role::latent_q_plain, Owner::layer, "attn_q.plain.weight", extent::query_inputs, extent::all_plain},
    {Role::latent_q_turned, Owner::layer, "attn_q.turned.weight", extent::query_inputs, extent::all_turned},
    {Role::latent_kv_a, Owner::layer, "attn_kv_a_mqa.weight", extent::width, extent::latent_and_turned,
     {Role::latent_kv, Role::latent_k_turned, Role::count}},
    {Role::latent_kv, Owner::layer, "attn_kv_a.latent.weight", extent::width, extent::latent},
    {Role::latent_k_turned, Owner::layer, "attn_kv_a.turned.weight", extent::width, extent::turned},
    {.role = Role::latent_kv_norm, .owner = Owner::layer, .name = "attn_kv_a_norm.weight", .inputs = extent::latent, .is_norm = true},
    {.role = Role::latent_k_b, .owner = Owner::layer, .name = "attn_k_b.weight", .inputs = extent::plain,
     .outputs = extent::latent, .count = extent::heads},
    {.role = Role::latent_v_b, .owner = Owner::layer, .name = "attn_v_b.weight", .inputs = extent::latent,
     .outputs = extent::head_value, .count = extent::heads},
    {Role::latent_output, Owner::layer, "attn_output.weight", extent::head_values, extent::width},
    // Recurrent mixers. In Mamba-2 one matrix computes the gate, the columns that are convolved, and the steps (one number for each head
    // and token, called dt in the paper). Delta nets have several matrices; files call a delta net's steps alpha.
    {Role::state_in, Owner::layer, "ssm_in.weight", extent::width, extent::all_of_state,
     {Role::state_gate, Role::state_mixed, Role::state_steps}},
    {Role::state_gate, Owner::layer, "attn_gate.weight", extent::width, extent::all_values},
    {Role::state_mixed, Owner::layer, "attn_qkv.weight", extent::width, extent::mixed},
    // The matrix has, for each group, first the rows of its heads' betas, then the rows of the heads' steps.
    {.role = Role::state_steps_betas, .owner = Owner::layer, .name = "ssm_ba.weight", .inputs = extent::width,
     .outputs = extent::steps_and_betas, .parts = {Role::state_betas, Role::state_steps, Role::count}, .turns = extent::state_groups},
    {Role::state_steps, Owner::layer, "ssm_alpha.weight", extent::width, extent::state_heads},
    {Role::state_betas, Owner::layer, "ssm_beta.weight", extent::width, extent::state_heads},
    {.role = Role::state_conv, .owner = Owner::layer, .name = "ssm_conv1d.weight", .inputs = extent::convolved,
     .count = extent::mixed, .by_element = true},
    {Role::state_conv_bias, Owner::layer, "ssm_conv1d.bias", extent::mixed},
    {Role::state_step_bias, Owner::layer, "ssm_dt.bias", extent::state_heads},
    {Role::delta_rate, Owner::layer, "ssm_a", extent::state_heads},  // -exp(A_log), computed by the converter
    {.role = Role::scan_rate, .owner = Owner::layer, .name = "ssm_a", .inputs = extent::one, .count = extent::state_heads},
    {.role = Role::scan_skip, .owner = Owner::layer, .name = "ssm_d", .inputs = extent::one, .count = extent::state_heads},
    {.role = Role::delta_norm, .owner = Owner::layer, .name = "ssm_norm.weight", .inputs = extent::state_values, .is_norm = true},
    {.role = Role::scan_norm, .owner = Owner::layer, .name = "ssm_norm.weight", .inputs = extent::group_values,
     .count = extent::state_groups, .is_norm = true},
    {Role::state_out, Owner::layer, "ssm_out.weight", extent::all_values, extent::width},
    // The matrix has three parts: the gate before the convolution, the gate after it, and the input of the convolution.
    {Role::short_in, Owner::layer, "shortconv.in_proj.weight", extent::width, extent::three_widths,
     {Role::short_before, Role::short_behind, Role::short_mixed}},
    {Role::short_before, Owner::layer, "shortconv.before.weight", extent::width, extent::width},
    {Role::short_behind, Owner::layer, "shortconv.behind.weight", extent::width, extent::width},
    {Role::short_mixed, Owner::layer, "shortconv.mixed.weight", extent::width, extent::width},
    {.role = Role::short_conv, .owner = Owner::layer, .name = "shortconv.conv.weight", .inputs = extent::convolved,
     .count = extent::width, .by_element = true},
    {Role::short_out, Owner::layer, "shortconv.out_proj.weight", extent::width, extent::width},
    {.role = Role::ffn_norm, .owner = Owner::layer, .name = "ffn_norm.weight", .inputs = extent::width, .is_norm = true},
    {Role::ffn_norm_bias, Owner::layer, "ffn_norm.bias", extent::width},
    // The norm before the FFN, under the name post_attention_norm, which the converter of some architectures gives it. In files of other
    // architectures, a tensor of this name is a norm of attention's output (Role::attn_post_norm).
    {.role = Role::ffn_norm_late, .owner = Owner::layer, .name = "post_attention_norm.weight", .inputs = extent::width,
     .parts = {Role::ffn_norm, Role::count, Role::count}, .is_norm = true},
    {Role::ffn_gate_up, Owner::layer, "ffn_up.weight", extent::width, extent::gate_and_up,
     {Role::ffn_gate, Role::ffn_up, Role::count}},
    {Role::ffn_gate, Owner::layer, "ffn_gate.weight", extent::width, extent::dense},
    {Role::ffn_gate_bias, Owner::layer, "ffn_gate.bias", extent::ffn},
    {Role::ffn_up, Owner::layer, "ffn_up.weight", extent::width, extent::dense},
    {Role::ffn_up_bias, Owner::layer, "ffn_up.bias", extent::ffn},
    {Role::ffn_down, Owner::layer, "ffn_down.weight", extent::dense, extent::width},
    {Role::ffn_down_bias, Owner::layer, "ffn_down.bias", extent::width},
    {.role = Role::ffn_post_norm, .owner = Owner::layer, .name = "post_ffw_norm.weight", .inputs = extent::width, .is_norm = true},
    {.role = Role::ffn_sum_norm, .owner = Owner::layer, .name = "layer_output_norm.weight", .inputs = extent::width, .is_norm = true},
    {Role::ffn_sum_norm_bias, Owner::layer, "layer_output_norm.bias", extent::width},
    {Role::router, Owner::layer, "ffn_gate_inp.weight", extent::width, extent::experts},
    {Role::router_bias, Owner::layer, "ffn_gate_inp.bias", extent::experts},
    {.role = Role::router_norm, .owner = Owner::layer, .name = "ffn_gate_inp.scale", .inputs = extent::width, .is_norm = true},
    // A bias that is added to the router's scores when experts are chosen, but not when their outputs are weighted.
    {Role::choice_bias, Owner::layer, "exp_probs_b.bias", extent::experts},
    {Role::experts_in, Owner::layer, "ffn_latent_down.weight", extent::width, extent::expert_width},
    {Role::experts_out, Owner::layer, "ffn_latent_up.weight", extent::expert_width, extent::width},
    {.role = Role::expert_norm, .owner = Owner::layer, .name = "pre_ffw_norm_2.weight", .inputs = extent::width, .is_norm = true},
    {.role = Role::experts_gate_up, .owner = Owner::layer, .name = "ffn_gate_up_exps.weight", .inputs = extent::expert_width,
     .outputs = extent::gate_and_up, .parts = {Role::experts_gate, Role::experts_up, Role::count}, .count = extent::experts},
    {.role = Role::experts_gate, .owner = Owner::layer, .name = "ffn_gate_exps.weight", .inputs = extent::expert_width,
     .outputs = extent::ffn, .count = extent::experts},
    {.role = Role::experts_gate_bias, .owner = Owner::layer, .name = "ffn_gate_exps.bias", .inputs = extent::ffn,
     .count = extent::experts},
    {.role = Role::experts_up, .owner = Owner::layer, .name = "ffn_up_exps.weight", .inputs = extent::expert_width,
     .outputs = extent::ffn, .count = extent::experts},
    {.role = Role::experts_up_bias, .owner = Owner::layer, .name = "ffn_up_exps.bias", .inputs = extent::ffn,
     .count = extent::experts},
    {.role = Role::experts_down, .owner = Owner::layer, .name = "ffn_down_exps.weight", .inputs = extent::ffn,
     .outputs = extent::expert_width, .count = extent::experts},
    {.role = Role::experts_down_bias, .owner = Owner::layer, .name = "ffn_down_exps.bias", .inputs = extent::expert_width,
     .count = extent::experts},
    {Role::experts_scale, Owner::layer, "ffn_down_exps.scale", extent::experts},
    {.role = Role::dense_post_norm, .owner = Owner::layer, .name = "post_ffw_norm_1.weight", .inputs = extent::width, .is_norm = true},
    {.role = Role::experts_post_norm, .owner = Owner::layer, .name = "post_ffw_norm_2.weight", .inputs = extent::width, .is_norm = true},
    {Role::shared_gate, Owner::layer, "ffn_gate_shexp.weight", extent::width, extent::shared},
    {Role::shared_up, Owner::layer, "ffn_up_shexp.weight", extent::width, extent::shared},
    {Role::shared_down, Owner::layer, "ffn_down_shexp.weight", extent::shared, extent::width},
    {Role::shared_weight, Owner::layer, "ffn_gate_inp_shexp.weight", extent::width, extent::one},
    {Role::per_layer_gate, Owner::layer, "inp_gate.weight", extent::width, extent::per_layer},
    {Role::per_layer_proj, Owner::layer, "proj.weight", extent::per_layer, extent::width},
    {.role = Role::per_layer_post_norm, .owner = Owner::layer, .name = "post_norm.weight", .inputs = extent::width, .is_norm = true},
    {Role::output_scale, Owner::layer, "layer_output_scale.weight", extent::one},
    {.role = Role::mtp_token_norm, .owner = Owner::draft_head, .name = "nextn.enorm.weight", .inputs = extent::width, .is_norm = true},
    {.role = Role::mtp_hidden_norm, .owner = Owner::draft_head, .name = "nextn.hnorm.weight", .inputs = extent::width, .is_norm = true},
    // An MTP head's input matrix. Each row has first the weights for the token's embedding, then those for the hidden state.
    {.role = Role::mtp_in, .owner = Owner::draft_head, .name = "nextn.eh_proj.weight", .inputs = extent::two_widths,
     .outputs = extent::width, .parts = {Role::mtp_token_in, Role::mtp_hidden_in, Role::count}, .by_columns = true},
    {Role::mtp_token_in, Owner::draft_head, "nextn.eh_proj.token.weight", extent::width, extent::width},
    {Role::mtp_hidden_in, Owner::draft_head, "nextn.eh_proj.hidden.weight", extent::width, extent::width},
    {Role::mtp_token_embd, Owner::draft_head, "nextn.embed_tokens.weight", extent::width, extent::vocabulary},
    {.role = Role::mtp_output_norm, .owner = Owner::draft_head, .name = "nextn.shared_head_norm.weight", .inputs = extent::width,
     .is_norm = true},
    {Role::mtp_output, Owner::draft_head, "nextn.shared_head_head.weight", extent::width, extent::guessed},
    // A residual block of a Medusa head, x + silu(W x + b); and the output matrix after a head's last block.
    {Role::medusa_block, Owner::draft_head, "medusa.block.weight", extent::width, extent::width},
    {Role::medusa_block_bias, Owner::draft_head, "medusa.block.bias", extent::width},
    {Role::medusa_output, Owner::draft_head, "medusa.output.weight", extent::width, extent::vocabulary},
    // EAGLE heads. An EAGLE-1 head's input matrix is mtp_in. EAGLE-3 heads have MTP's norms, embedding and output.
    {Role::eagle_in_bias, Owner::draft_head, "eagle.fc.bias", extent::width},
    // An EAGLE-3 head's input matrix. Each row has the weights for the hidden states of a low, a middle and a high layer.
    {.role = Role::eagle_features, .owner = Owner::draft_head, .name = "eagle.fc.weight", .inputs = extent::three_widths,
     .outputs = extent::width, .parts = {Role::eagle_low_in, Role::eagle_mid_in, Role::eagle_high_in}, .by_columns = true},
    {Role::eagle_low_in, Owner::draft_head, "eagle.fc.low.weight", extent::width, extent::width},
    {Role::eagle_mid_in, Owner::draft_head, "eagle.fc.mid.weight", extent::width, extent::width},
    {Role::eagle_high_in, Owner::draft_head, "eagle.fc.high.weight", extent::width, extent::width},
    // The matrices of an EAGLE-3 head's attention. Each row has first the weights for the token's embedding, then those for the hidden state.
    {.role = Role::eagle_q, .owner = Owner::draft_head, .name = "eagle.attn_q.weight", .inputs = extent::two_widths,
     .outputs = extent::queries, .parts = {Role::eagle_q_token, Role::eagle_q_hidden, Role::count}, .by_columns = true},
    {Role::eagle_q_token, Owner::draft_head, "eagle.attn_q.token.weight", extent::width, extent::queries},
    {Role::eagle_q_hidden, Owner::draft_head, "eagle.attn_q.hidden.weight", extent::width, extent::queries},
    {.role = Role::eagle_k, .owner = Owner::draft_head, .name = "eagle.attn_k.weight", .inputs = extent::two_widths,
     .outputs = extent::keys, .parts = {Role::eagle_k_token, Role::eagle_k_hidden, Role::count}, .by_columns = true},
    {Role::eagle_k_token, Owner::draft_head, "eagle.attn_k.token.weight", extent::width, extent::keys},
    {Role::eagle_k_hidden, Owner::draft_head, "eagle.attn_k.hidden.weight", extent::width, extent::keys},
    {.role = Role::eagle_v, .owner = Owner::draft_head, .name = "eagle.attn_v.weight", .inputs = extent::two_widths,
     .outputs = extent::values, .parts = {Role::eagle_v_token, Role::eagle_v_hidden, Role::count}, .by_columns = true},
    {Role::eagle_v_token, Owner::draft_head, "eagle.attn_v.token.weight", extent::width, extent::values},
    {Role::eagle_v_hidden, Owner::draft_head, "eagle.attn_v.hidden.weight", extent::width, extent::values},
};

namespace detail {

constexpr bool rows_are_in_order() noexcept {
  for (std::size_t i = 0; i < std::size(kRoleTable); ++i) {
    if (static_cast<std::size_t>(kRoleTable[i].role) != i) return false;
  }
  return std::size(kRoleTable) == kRoles;
}
static_assert(rows_are_in_order(), "every role has one row, in the order of the roles");

}  // namespace detail

// Returns whether tensors of this role serve only to compute a layer's own keys and values.
[[nodiscard]] constexpr bool is_of_keys(Role role) noexcept {
  return (role >= Role::attn_k && role <= Role::attn_v_bias) || role == Role::attn_k_norm;
}

// Returns whether a layer of this kind can have a tensor of this role. That depends on the layer's mixer, on its FFN, and on whether it
// computes keys and values itself (LayerSpec::keys_of).
[[nodiscard]] inline bool has_role(const ModelSpec& spec, const LayerSpec& layer, Role role) noexcept {
  const bool has_dense = layer.ffn == Ffn::gated || layer.ffn == Ffn::plain || layer.ffn == Ffn::dense_and_experts;
  if (role >= Role::shared_gate && role <= Role::shared_weight) return !has_dense && layer.shared_dim != 0;
  if (role == Role::experts_in || role == Role::experts_out) return layer.expert_width != 0;
  if (role >= Role::router && role <= Role::experts_post_norm) return layer.has_experts();
  if (role >= Role::ffn_gate_up && role <= Role::ffn_down_bias) return has_dense;
  if (role >= Role::per_layer_gate && role <= Role::per_layer_post_norm) return spec.per_layer_dim != 0;
  if (role >= Role::per_layer_token_embd && role <= Role::per_layer_proj_norm) return spec.per_layer_dim != 0;
  if (role >= Role::attn_qkv && role <= Role::attn_output_bias) {
    return layer.mixer == Mixer::attention && !layer.is_latent() && (layer.keys_of == kOwnKeys || !is_of_keys(role));
  }
  if (role == Role::latent_q) return layer.is_latent() && layer.query_rank == 0;
  if (role >= Role::latent_q_a && role <= Role::latent_q_b) return layer.is_latent() && layer.query_rank != 0;
  if (role >= Role::latent_q_plain && role <= Role::latent_output) return layer.is_latent();
  if (role >= Role::state_in && role <= Role::state_out) return layer.mixer == Mixer::delta_net || layer.mixer == Mixer::mamba2;
  if (role >= Role::short_in && role <= Role::short_out) return layer.mixer == Mixer::short_convolution;
  return true;
}

[[nodiscard]] constexpr const RoleRow& row_of(Role role) noexcept { return kRoleTable[static_cast<std::size_t>(role)]; }

}  // namespace tessera
