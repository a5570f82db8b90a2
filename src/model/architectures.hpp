// The list of all architectures. To add one, include its table and name it in the list.
#pragma once

#include <array>
#include <string_view>

#include "model/arch/bert.hpp"
#include "model/arch/cohere2.hpp"
#include "model/arch/command_r.hpp"
#include "model/arch/deepseek2.hpp"
#include "model/arch/ernie4_5.hpp"
#include "model/arch/exaone4.hpp"
#include "model/arch/falcon.hpp"
#include "model/arch/gemma.hpp"
#include "model/arch/gemma2.hpp"
#include "model/arch/gemma3.hpp"
#include "model/arch/gemma4.hpp"
#include "model/arch/gemma_embedding.hpp"
#include "model/arch/glm4.hpp"
#include "model/arch/glm4moe.hpp"
#include "model/arch/gpt2.hpp"
#include "model/arch/gpt_oss.hpp"
#include "model/arch/granite.hpp"
#include "model/arch/granitehybrid.hpp"
#include "model/arch/granitemoe.hpp"
#include "model/arch/hunyuan_dense.hpp"
#include "model/arch/lfm2.hpp"
#include "model/arch/lfm2moe.hpp"
#include "model/arch/llama.hpp"
#include "model/arch/minimax_m2.hpp"
#include "model/arch/mistral.hpp"
#include "model/arch/mistral3.hpp"
#include "model/arch/mistral4.hpp"
#include "model/arch/modern_bert.hpp"
#include "model/arch/nemotron_h.hpp"
#include "model/arch/nemotron_h_moe.hpp"
#include "model/arch/nomic_bert.hpp"
#include "model/arch/olmo2.hpp"
#include "model/arch/phi3.hpp"
#include "model/arch/qwen2.hpp"
#include "model/arch/qwen2moe.hpp"
#include "model/arch/qwen3.hpp"
#include "model/arch/qwen35.hpp"
#include "model/arch/qwen35moe.hpp"
#include "model/arch/qwen3moe.hpp"
#include "model/arch/qwen3next.hpp"
#include "model/arch/seed_oss.hpp"
#include "model/arch/smollm3.hpp"
#include "model/arch/stablelm.hpp"
#include "model/arch/starcoder2.hpp"

namespace tessera::arch {

inline constexpr std::array kAll = {&kLlama,   &kMistral,    &kMistral3, &kQwen2,    &kQwen3,    &kGpt2,
                                    &kFalcon,  &kGemma,      &kGemma3,   &kGranite,  &kSmolLm3,  &kOlmo2,
                                    &kPhi3,    &kGlm4,       &kExaone4,  &kCommandR, &kCohere2,  &kSeedOss,
                                    &kErnie45, &kStarCoder2, &kStableLm, &kQwen3Moe, &kQwen2Moe, &kGraniteMoe,
                                    &kGemma2,  &kGptOss,     &kGlm4Moe,  &kMiniMaxM2, &kHunyuanDense,
                                    &kQwen35,  &kQwen35Moe, &kQwen3Next, &kLfm2, &kLfm2Moe, &kGraniteHybrid,
                                    &kNemotronH, &kDeepSeek2, &kGemma4, &kNemotronHMoe, &kMistral4, &kBert, &kNomicBert, &kModernBert,
                                    &kGemmaEmbedding};

[[nodiscard]] constexpr const Architecture* find(std::string_view name) noexcept {
  for (const Architecture* table : kAll) {
    if (table->name == name) return table;
  }
  return nullptr;
}

}  // namespace tessera::arch
