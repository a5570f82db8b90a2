#include "hub/written/class_names.hpp"

namespace tessera::detail::hub {

namespace {

struct ClassRow {
  std::string_view model_type, name;
};
constexpr ClassRow kClasses[] = {
    {"arcee", "ArceeForCausalLM"},
    {"bert", "BertModel"},
    {"cohere", "CohereForCausalLM"},
    {"cohere2", "Cohere2ForCausalLM"},
    {"cwm", "CwmForCausalLM"},
    {"deepseek", "DeepseekForCausalLM"},
    {"deepseek_v2", "DeepseekV2ForCausalLM"},
    {"deepseek_v3", "DeepseekV3ForCausalLM"},
    {"dots1", "Dots1ForCausalLM"},
    {"ernie4_5", "Ernie4_5ForCausalLM"},
    {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM"},
    {"exaone", "ExaoneForCausalLM"},
    {"exaone4", "Exaone4ForCausalLM"},
    {"exaone_moe", "ExaoneMoeForCausalLM"},
    {"falcon", "FalconForCausalLM"},
    {"gemma", "GemmaForCausalLM"},
    {"gemma2", "Gemma2ForCausalLM"},
    {"gemma3_text", "Gemma3ForCausalLM"},
    {"gemma4_text", "Gemma4ForCausalLM"},
    {"glm", "GlmForCausalLM"},
    {"glm4", "Glm4ForCausalLM"},
    {"glm4_moe", "Glm4MoeForCausalLM"},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM"},
    {"gpt2", "GPT2LMHeadModel"},
    {"gpt_bigcode", "GPTBigCodeForCausalLM"},
    {"gpt_neox", "GPTNeoXForCausalLM"},
    {"gpt_oss", "GptOssForCausalLM"},
    {"granite", "GraniteForCausalLM"},
    {"granitemoe", "GraniteMoeForCausalLM"},
    {"granitemoehybrid", "GraniteMoeHybridForCausalLM"},
    {"granitemoeshared", "GraniteMoeSharedForCausalLM"},
    {"helium", "HeliumForCausalLM"},
    {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"},
    {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM"},
    {"hy_v3", "HYV3ForCausalLM"},
    {"internlm2", "InternLM2ForCausalLM"},
    {"kimi_k2", "DeepseekV3ForCausalLM"},
    {"lfm2", "Lfm2ForCausalLM"},
    {"lfm2_moe", "Lfm2MoeForCausalLM"},
    {"llama", "LlamaForCausalLM"},
    {"minicpm", "MiniCPMForCausalLM"},
    {"minimax_m2", "MiniMaxM2ForCausalLM"},
    {"ministral", "MinistralForCausalLM"},
    {"ministral3", "Ministral3ForCausalLM"},
    {"mistral", "MistralForCausalLM"},
    {"mistral4", "Mistral4ForCausalLM"},
    {"mixtral", "MixtralForCausalLM"},
    {"modernbert", "ModernBertModel"},
    {"nemotron", "NemotronForCausalLM"},
    {"nemotron_h", "NemotronHForCausalLM"},
    {"nomic_bert", "NomicBertModel"},
    {"olmo2", "Olmo2ForCausalLM"},
    {"olmo3", "Olmo3ForCausalLM"},
    {"olmoe", "OlmoeForCausalLM"},
    {"orion", "OrionForCausalLM"},
    {"phi", "PhiForCausalLM"},
    {"phi3", "Phi3ForCausalLM"},
    {"qwen2", "Qwen2ForCausalLM"},
    {"qwen2_moe", "Qwen2MoeForCausalLM"},
    {"qwen2_vl_text", "Qwen2VLForConditionalGeneration"},
    {"qwen3", "Qwen3ForCausalLM"},
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"},
    {"qwen3_5_text", "Qwen3_5ForCausalLM"},
    {"qwen3_moe", "Qwen3MoeForCausalLM"},
    {"qwen3_next", "Qwen3NextForCausalLM"},
    {"roberta", "RobertaModel"},
    {"seed_oss", "SeedOssForCausalLM"},
    {"smollm3", "SmolLM3ForCausalLM"},
    {"stablelm", "StableLmForCausalLM"},
    {"starcoder2", "Starcoder2ForCausalLM"},
    {"xlm-roberta", "XLMRobertaModel"},
};

}  // namespace

std::string_view class_of(std::string_view model_type) noexcept {
  for (const ClassRow& row : kClasses) {
    if (row.model_type == model_type) return row.name;
  }
  return {};
}

}  // namespace tessera::detail::hub
