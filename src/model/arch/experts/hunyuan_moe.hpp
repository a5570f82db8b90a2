// Hunyuan-A13B (Tencent 2025): like the dense Hunyuan models, but the FFNs are experts and a shared expert. The experts are weighted by
// the softmax over all experts, renormalised.
#pragma once

#include "model/arch/dense/hunyuan_dense.hpp"

namespace tessera::arch {

inline constexpr Architecture kHunyuanMoe = [] {
  Architecture table = kHunyuanDense;
  table.name = "hunyuan-moe";
  table.tensors = with_experts(kHunyuanDense.tensors);
  table.experts = {.some = true};
  return table;
}();

}  // namespace tessera::arch
