// ChatGLM 3 and GLM-4-9B (Zeng et al. 2022; GLM Team 2024): one matrix for gate and up, rope pairs (2i, 2i+1) in half of each head, and biases
// of Q, K and V.
#pragma once

#include "model/arch/dense/glm4.hpp"

namespace tessera::arch {

inline constexpr Architecture kChatGlm = [] {
  Architecture table = kGlm4;
  table.name = "chatglm";
  table.tensors = kGlm4.tensors.without(Role::attn_post_norm, Role::ffn_post_norm).optional(Role::attn_qkv, Role::attn_qkv_bias);
  return table;
}();

}  // namespace tessera::arch
