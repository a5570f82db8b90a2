// Settings of a file's metadata that change results: read, or refused by their key.
#include "engine/changed_model.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

template <class Change>
std::string refusal(const std::string& model, Change change) {
  const auto engine = load_changed(model, change);
  REQUIRE(!engine);
  return engine.error().text();
}

std::vector<float> logits_of(const Engine& engine, std::size_t n = 12) {
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  const auto tokens = read_tokens(golden_dir() / "phi3-long.tokens.txt");
  return all_logits(session, std::span(tokens).first(n), n);
}

}  // namespace

TEST_CASE("a setting that is not implemented is refused by its key", "[model]") {
  const auto check = [](const std::string& model, const std::string& key, auto value) {
    const std::string text = refusal(model, [&](GgufWriter& writer) { must(writer.set(key, value)); });
    CHECK(text.find(key) != std::string::npos);
  };
  check("llama-gqa", "llama.attn_logit_softcapping", 50.0f);
  check("llama-gqa", "llama.logit_scale", 2.0f);
  check("llama-gqa", "llama.attention.temperature_scale", 0.1f);
  check("qwen3", "qwen3.expert_count", std::uint32_t{8});
  check("qwen3moe", "qwen3moe.expert_gating_func", std::uint32_t{4});
  check("qwen3moe", "qwen3moe.expert_used_count", std::uint32_t{11});  // of 10
  check("qwen3moe", "qwen3moe.expert_group_count", std::uint32_t{3});
  check("ernie4_5", "ernie4_5.expert_count", std::uint32_t{4});
  check("phi3-long", "phi3.rope.scaling.attn_factor", -1.0f);
  for (const char* type : {"dynamic", "longrope"}) {
    const std::string text = refusal("llama-gqa", [&](GgufWriter& writer) { must(writer.set_string("llama.rope.scaling.type", type)); });
    CHECK(text.find("llama.rope.scaling.type") != std::string::npos);
  }
}

TEST_CASE("a shared expert that a file speaks of has to be there", "[model]") {
  const std::string text = refusal("mixtral", [](GgufWriter& writer) { must(writer.set("llama.expert_shared_count", std::uint32_t{1})); });
  CHECK(text.find("blk.0.ffn_gate_shexp.weight") != std::string::npos);
}

TEST_CASE("LongRoPE: an engine's context says which factors its sequences have", "[model]") {
  const Engine whole = load_golden("phi3-long");
  const Engine within = load_golden("phi3-long", {.context = 16});  // that of the model's first training
  const Engine cut = load_golden("phi3-long", {.context = 17});
  CHECK(same_bits(logits_of(whole), logits_of(cut)));
  CHECK(!same_bits(logits_of(whole), logits_of(within)));
}

TEST_CASE("the plan of a model with experts counts the active ones", "[model]") {
  const ModelFile file = must(ModelFile::open(golden_dir() / "qwen3moe.gguf"));
  const Plan plan = must(Engine::plan(file));
  // 3 of 10 experts, of 3 matrices of 20 x 32 in each of 2 layers, F32.
  const std::uint64_t resting = 7ull * 3 * 20 * 32 * 4 * 2, embeddings = 100ull * 32 * 4;
  std::uint64_t matrices = 0;
  for (const GgufTensor& tensor : file.tensors()) matrices += tensor.bytes;
  CHECK(plan.weights_per_token == matrices - resting - embeddings);
}
