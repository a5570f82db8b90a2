#include "shapes.hpp"

#include "model/architectures.hpp"

namespace tessera::bench {

namespace {

// The shapes, with the numbers of the models' config.json files. A row has the fields of Shape in order: d_model, layers, heads, KV heads,
// head_dim, FFN, vocabulary, context, rope theta, tied (output matrix and embeddings are one), experts, used experts; then RecurrentShape,
// LatentShape, DenseShape and MTP heads.
constexpr Shape kShapes[] = {
    {"llama-1b", "TinyLlama 1.1B", &arch::kLlama, 2048, 22, 32, 4, 64, 5632, 32000, 2048, 1e4, false},
    {"llama-8b", "Llama 3 8B", &arch::kLlama, 4096, 32, 32, 8, 128, 14336, 128256, 8192, 5e5, false},
    {"mistral-7b", "Mistral 7B v0.3", &arch::kLlama, 4096, 32, 32, 8, 128, 14336, 32768, 32768, 1e6, false},
    {"qwen-0.5b", "Qwen2.5 0.5B", &arch::kQwen2, 896, 24, 14, 2, 64, 4864, 151936, 32768, 1e6, true},
    {"qwen-7b", "Qwen2.5 7B", &arch::kQwen2, 3584, 28, 28, 4, 128, 18944, 152064, 32768, 1e6, false},
    {"qwen3-0.6b", "Qwen3 0.6B", &arch::kQwen3, 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1e6, true},
    {"qwen3-8b", "Qwen3 8B", &arch::kQwen3, 4096, 36, 32, 8, 128, 12288, 151936, 40960, 1e6, false},
    {"qwen3-30b-a3b", "Qwen3 30B-A3B", &arch::kQwen3Moe, 2048, 48, 32, 4, 128, 768, 151936, 40960, 1e6, false, 128, 8},
    {"qwen3-moe-6", "six of its layers", &arch::kQwen3Moe, 2048, 6, 32, 4, 128, 768, 151936, 40960, 1e6, false, 128, 8},
    {"glm-4.7-flash", "GLM-4.7-Flash", &arch::kDeepSeek2, 2048, 47, 20, 1, 576, 1536, 154880, 202752, 1e6, false, 64, 4, {},
     {512, 64, 192, 256, 768}, {1, 10240, 1536}},
    {"glm-flash-6", "six of its layers", &arch::kDeepSeek2, 2048, 6, 20, 1, 576, 1536, 154880, 202752, 1e6, false, 64, 4, {},
     {512, 64, 192, 256, 768}, {1, 10240, 1536}},
    {"qwen3.5-0.8b", "Qwen3.5 0.8B", &arch::kQwen35, 1024, 24, 8, 2, 256, 3584, 248320, 262144, 1e7, true, 0, 0,
     {"rrra", 4, 16, 16, 128, 128}},
    {"qwen3.5-0.8b-mtp", "with its MTP head", &arch::kQwen35, 1024, 24, 8, 2, 256, 3584, 248320, 262144, 1e7, true, 0, 0,
     {"rrra", 4, 16, 16, 128, 128}, {}, {}, 1},
    {"lfm2-1.2b", "LFM2 1.2B", &arch::kLfm2, 2048, 16, 32, 8, 64, 8192, 65536, 128000, 1e6, true, 0, 0,
     {"rrarrarrararararar", 3}},
    {"granite-4-h-1b", "Granite 4.0 H 1B", &arch::kGraniteHybrid, 1536, 40, 12, 4, 128, 4096, 100352, 131072, 1e4, true, 0, 0,
     {"rrrrrarrrr", 4, 48, 1, 128, 64}},
    {"falcon-7b", "Falcon 7B", &arch::kFalcon, 4544, 32, 71, 1, 64, 18176, 65024, 2048, 1e4, true},
    {"gpt2-124m", "GPT-2", &arch::kGpt2, 768, 12, 12, 12, 64, 3072, 50257, 1024, 0, true},
    {"tiny", "none, for trying out", &arch::kLlama, 256, 2, 4, 2, 64, 512, 512, 256, 1e4, false},
};

}  // namespace

std::span<const Shape> shapes() noexcept { return kShapes; }

const Shape* find_shape(std::string_view name) noexcept {
  for (const Shape& shape : kShapes) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

}  // namespace tessera::bench
