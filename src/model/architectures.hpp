// The list of all architectures. To add one, include its table and name it in the list.
#pragma once

#include <array>
#include <string_view>

#include "model/arch/dense/arcee.hpp"
#include "model/arch/dense/chatglm.hpp"
#include "model/arch/dense/ernie4_5.hpp"
#include "model/arch/dense/exaone.hpp"
#include "model/arch/dense/exaone4.hpp"
#include "model/arch/dense/glm4.hpp"
#include "model/arch/dense/granite.hpp"
#include "model/arch/dense/hunyuan_dense.hpp"
#include "model/arch/dense/internlm2.hpp"
#include "model/arch/dense/layer_norm/cohere2.hpp"
#include "model/arch/dense/layer_norm/command_r.hpp"
#include "model/arch/dense/layer_norm/falcon.hpp"
#include "model/arch/dense/layer_norm/gpt2.hpp"
#include "model/arch/dense/layer_norm/gptneox.hpp"
#include "model/arch/dense/layer_norm/nemotron.hpp"
#include "model/arch/dense/layer_norm/orion.hpp"
#include "model/arch/dense/layer_norm/phi2.hpp"
#include "model/arch/dense/layer_norm/stablelm.hpp"
#include "model/arch/dense/layer_norm/starcoder.hpp"
#include "model/arch/dense/layer_norm/starcoder2.hpp"
#include "model/arch/dense/llama.hpp"
#include "model/arch/dense/minicpm.hpp"
#include "model/arch/dense/mistral.hpp"
#include "model/arch/dense/mistral3.hpp"
#include "model/arch/dense/olmo2.hpp"
#include "model/arch/dense/phi3.hpp"
#include "model/arch/dense/qwen2.hpp"
#include "model/arch/dense/qwen2vl.hpp"
#include "model/arch/dense/qwen3.hpp"
#include "model/arch/dense/qwen3vl.hpp"
#include "model/arch/dense/seed_oss.hpp"
#include "model/arch/dense/smollm3.hpp"
#include "model/arch/encoders/bert.hpp"
#include "model/arch/encoders/eurobert.hpp"
#include "model/arch/encoders/gemma_embedding.hpp"
#include "model/arch/encoders/gte.hpp"
#include "model/arch/encoders/jina_bert_v3.hpp"
#include "model/arch/encoders/llama_embed.hpp"
#include "model/arch/encoders/modern_bert.hpp"
#include "model/arch/encoders/nomic_bert.hpp"
#include "model/arch/experts/deepseek.hpp"
#include "model/arch/experts/dots1.hpp"
#include "model/arch/experts/ernie4_5_moe.hpp"
#include "model/arch/experts/exaone_moe.hpp"
#include "model/arch/experts/glm4moe.hpp"
#include "model/arch/experts/gpt_oss.hpp"
#include "model/arch/experts/granitemoe.hpp"
#include "model/arch/experts/hunyuan_moe.hpp"
#include "model/arch/experts/hy_v3.hpp"
#include "model/arch/experts/minimax_m2.hpp"
#include "model/arch/experts/olmoe.hpp"
#include "model/arch/experts/qwen2moe.hpp"
#include "model/arch/experts/qwen3moe.hpp"
#include "model/arch/experts/qwen3vlmoe.hpp"
#include "model/arch/gemma/gemma.hpp"
#include "model/arch/gemma/gemma2.hpp"
#include "model/arch/gemma/gemma3.hpp"
#include "model/arch/gemma/gemma4.hpp"
#include "model/arch/latent/deepseek2.hpp"
#include "model/arch/latent/mistral4.hpp"
#include "model/arch/recurrent/granitehybrid.hpp"
#include "model/arch/recurrent/lfm2.hpp"
#include "model/arch/recurrent/lfm2moe.hpp"
#include "model/arch/recurrent/nemotron_h.hpp"
#include "model/arch/recurrent/nemotron_h_moe.hpp"
#include "model/arch/recurrent/qwen35.hpp"
#include "model/arch/recurrent/qwen35moe.hpp"
#include "model/arch/recurrent/qwen3next.hpp"

namespace tessera::arch {

inline constexpr std::array kAll = {&kLlama,   &kMistral,    &kMistral3, &kQwen2,    &kQwen3,    &kGpt2,
                                    &kFalcon,  &kGemma,      &kGemma3,   &kGranite,  &kSmolLm3,  &kOlmo2,
                                    &kPhi3,    &kGlm4,       &kExaone4,  &kCommandR, &kCohere2,  &kSeedOss,
                                    &kErnie45, &kStarCoder2, &kStableLm, &kQwen3Moe, &kQwen2Moe, &kGraniteMoe,
                                    &kGemma2,  &kGptOss,     &kGlm4Moe,  &kMiniMaxM2, &kHunyuanDense,
                                    &kQwen35,  &kQwen35Moe, &kQwen3Next, &kLfm2, &kLfm2Moe, &kGraniteHybrid,
                                    &kNemotronH, &kDeepSeek2, &kGemma4, &kNemotronHMoe, &kMistral4, &kBert, &kNomicBert,
                                    &kModernBert, &kGemmaEmbedding, &kJinaBert3, &kGte, &kEuroBert, &kLlamaEmbed,
                                    &kArcee, &kChatGlm, &kExaone, &kGptNeoX, &kInternLm2, &kMiniCpm, &kNemotron, &kOrion, &kPhi2,
                                    &kQwen2Vl, &kQwen3Vl, &kStarCoder, &kDeepSeek, &kDots1, &kErnie45Moe, &kExaoneMoe, &kHunyuan3, &kHunyuanMoe,
                                    &kOlmoe, &kQwen3VlMoe};

[[nodiscard]] constexpr const Architecture* find(std::string_view name) noexcept {
  for (const Architecture* table : kAll) {
    if (table->name == name) return table;
  }
  return nullptr;
}

}  // namespace tessera::arch
