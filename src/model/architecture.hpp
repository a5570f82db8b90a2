// An architecture is a table: which tensors it has, how its block is wired, and where it differs from Llama in the
// metadata. One forward pass reads what the table says. To add one: write its table and put it into architectures.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tessera/model/model_spec.hpp>

namespace tessera {

// The parts a tensor can play. The first group exists once, the second once per layer ("blk.N." goes before the name).
enum class Role : std::uint8_t {
  token_embd, position_embd, output_norm, output_norm_bias, output, rope_freqs,
  attn_norm, attn_norm_bias, attn_norm_2, attn_norm_2_bias,
  attn_qkv, attn_qkv_bias, attn_q, attn_q_bias, attn_k, attn_k_bias, attn_v, attn_v_bias,
  attn_q_norm, attn_k_norm, attn_output, attn_output_bias,
  ffn_norm, ffn_norm_bias, ffn_gate, ffn_gate_bias, ffn_up, ffn_up_bias, ffn_down, ffn_down_bias,
  count
};
inline constexpr std::size_t kRoles = static_cast<std::size_t>(Role::count);
inline constexpr std::size_t kFirstLayerRole = static_cast<std::size_t>(Role::attn_norm);

// GGUF's names (specification, "Standardized tensor names").
inline constexpr std::array<std::string_view, kRoles> kRoleNames = {
    "token_embd.weight", "position_embd.weight", "output_norm.weight", "output_norm.bias", "output.weight",
    "rope_freqs.weight",
    "attn_norm.weight", "attn_norm.bias", "attn_norm_2.weight", "attn_norm_2.bias",
    "attn_qkv.weight", "attn_qkv.bias", "attn_q.weight", "attn_q.bias", "attn_k.weight", "attn_k.bias", "attn_v.weight",
    "attn_v.bias", "attn_q_norm.weight", "attn_k_norm.weight", "attn_output.weight", "attn_output.bias",
    "ffn_norm.weight", "ffn_norm.bias", "ffn_gate.weight", "ffn_gate.bias", "ffn_up.weight", "ffn_up.bias",
    "ffn_down.weight", "ffn_down.bias"};

enum class Presence : std::uint8_t { absent, optional, required };

// Presence by role. Start from nothing and say what there is.
struct TensorTable {
  std::array<Presence, kRoles> presence{};

  template <class... Roles>
  [[nodiscard]] constexpr TensorTable required(Roles... roles) const noexcept {
    TensorTable table = *this;
    ((table.presence[static_cast<std::size_t>(roles)] = Presence::required), ...);
    return table;
  }
  template <class... Roles>
  [[nodiscard]] constexpr TensorTable optional(Roles... roles) const noexcept {
    TensorTable table = *this;
    ((table.presence[static_cast<std::size_t>(roles)] = Presence::optional), ...);
    return table;
  }
  [[nodiscard]] constexpr Presence operator[](Role role) const noexcept {
    return presence[static_cast<std::size_t>(role)];
  }
};

struct Architecture {
  std::string_view name;  // general.architecture, and the prefix of its keys
  Norm norm;
  Block block;
  Ffn ffn;
  Activation activation;
  Positions positions;
  RopePairs rope_pairs;
  TensorTable tensors;
};

// The tensors of a Llama-like model: RMSNorm, separate Q, K and V, gated FFN, no biases but those that are optional.
inline constexpr TensorTable kLlamaTensors =
    TensorTable{}
        .required(Role::token_embd, Role::output_norm, Role::attn_norm, Role::attn_q, Role::attn_k, Role::attn_v,
                  Role::attn_output, Role::ffn_norm, Role::ffn_gate, Role::ffn_up, Role::ffn_down)
        .optional(Role::output, Role::rope_freqs);  // without `output`, token_embd serves for both

}  // namespace tessera
