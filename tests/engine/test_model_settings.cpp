// Settings of a file's metadata that change results: read, or refused by their key.
#include <cmath>
#include <limits>

#include "engine/changed_model.hpp"
#include "engine/forwarding_backend.hpp"
#include "model/checks.hpp"

namespace test_model_settings {

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
  check("llama-gqa", "llama.attn_logit_softcapping", -50.0f);
  check("llama-gqa", "llama.nextn_predict_layers", std::uint32_t{1});
  check("glm4moe", "glm4moe.nextn_predict_layers", std::uint32_t{4});  // of 4 layers
  check("llama-gqa", "llama.logit_scale", 2.0f);
  check("llama-gqa", "llama.attention.temperature_scale", 0.1f);
  check("qwen3", "qwen3.expert_count", std::uint32_t{8});
  check("qwen3moe", "qwen3moe.expert_gating_func", std::uint32_t{4});
  check("qwen3moe", "qwen3moe.expert_used_count", std::uint32_t{11});  // of 10
  check("qwen3moe", "qwen3moe.expert_group_count", std::uint32_t{3});
  check("qwen3moe", "qwen3moe.moe_latent_size", std::uint32_t{16});
  check("ernie4_5", "ernie4_5.expert_count", std::uint32_t{4});
  check("phi3-long", "phi3.rope.scaling.attn_factor", -1.0f);
  check("olmo3", "olmo2.rope.scaling.yarn_ext_factor", 0.5f);
  check("olmo3", "olmo2.rope.scaling.yarn_attn_factor", 0.0f);
  for (const char* type : {"dynamic", "longrope"}) {
    const std::string text = refusal("llama-gqa", [&](GgufWriter& writer) { must(writer.set_string("llama.rope.scaling.type", type)); });
    CHECK(text.find("llama.rope.scaling.type") != std::string::npos);
  }
}

TEST_CASE("a factor that is 0 or infinite in float32, or whose inverse is, is refused at load", "[model]") {
  const auto check = [](const std::string& model, const std::string& key, auto value) {
    const std::string text = refusal(model, [&](GgufWriter& writer) { must(writer.set(key, value)); });
    INFO(key << ' ' << value);
    CHECK(text.find(key) != std::string::npos);
    CHECK(text.find("expected a positive number, 5.4e-20 to 1.8e+19") != std::string::npos);
  };
  for (const float value : {1e-45f, 1e-30f, 1e38f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    check("granite", "granite.logit_scale", value);
    check("granite", "granite.attention.scale", value);
    check("command-r", "command-r.logit_scale", value);
    check("glm4moe", "glm4moe.expert_weights_scale", value);
    check("gemma2", "gemma2.final_logit_softcapping", value);
    check("olmo3", "olmo2.rope.scaling.factor", value);
    check("olmo3", "olmo2.rope.scaling.yarn_attn_factor", value);
  }
}

// Against transformers: the goldens of the same names. llama.cpp's converter writes attention_factor under this key.
TEST_CASE("yarn_attn_factor is what rotated elements are multiplied by, and without it YaRN's own growth is", "[model]") {
  const auto magnitude = [](const Engine& engine) { return engine.spec().ropes.front().magnitude; };
  CHECK(magnitude(load_golden("olmo3")) == Approx(0.1 * std::log(4.0) + 1.0));
  CHECK(magnitude(load_golden("olmo3-magnitude")) == 1.4f);
  CHECK(load_golden("olmo3-magnitude").spec().ropes.back().magnitude == 1.0f);  // of layers with a window
  CHECK(magnitude(load_golden("mistral4")) == 1.0f);
  CHECK(magnitude(load_golden("mistral4-magnitude")) == 1.3f);
  CHECK(load_golden("mistral4-magnitude").spec().layers[0].scale == load_golden("mistral4").spec().layers[0].scale);
  const Engine one = changed_model("olmo3", [](GgufWriter& writer) { must(writer.set("olmo2.rope.scaling.yarn_attn_factor", 1.0f)); });
  CHECK(magnitude(one) == 1.0f);
  CHECK(!same_bits(logits_of(one), logits_of(load_golden("olmo3"))));
}

TEST_CASE("Mistral 4's queries grow at transformers' default where the file leaves the rate out", "[model]") {
  const Engine silent = must(load_changed("mistral4", [](GgufWriter&) {}, {}, {"mistral4.attention.temperature_scale"}));
  CHECK(silent.spec().temperature_rate == 0.1);
  CHECK(silent.spec().temperature_length == 16);
  const Engine still = changed_model("mistral4", [](GgufWriter& writer) { must(writer.set("mistral4.attention.temperature_scale", 0.0f)); });
  CHECK(still.spec().temperature_rate == 0.0);
  CHECK(load_golden("deepseek-v3").spec().temperature_rate == 0.0);
  CHECK(load_golden("mistral3").spec().temperature_rate > 0.2);
  const Engine plain = must(load_changed("mistral3", [](GgufWriter&) {}, {}, {"mistral3.attention.temperature_scale"}));
  CHECK(plain.spec().temperature_rate == 0.0);
}

TEST_CASE("explain says which of LongRoPE's factors an engine has, and why", "[model]") {
  const auto factors = [](const std::string& model, std::uint32_t context) -> std::string {
    for (const KernelUse& use : must(load_golden(model, {.context = context}).explain())) {
      if (use.kind == Operation::rope_factors) return use.kernel;
    }
    return "";
  };
  CHECK(factors("phi3-long", 0) == "LongRoPE's long ones: the context of 64 is beyond the 16 of the first training");
  CHECK(factors("phi3-long", 17) == "LongRoPE's long ones: the context of 17 is beyond the 16 of the first training");
  CHECK(factors("phi3-long", 16) == "LongRoPE's short ones: the context of 16 is within the 16 of the first training");
  CHECK(factors("phi3-short", 0) == "LongRoPE's short ones: the context of 64 is within the 64 of the first training");
  CHECK(factors("llama-gqa", 0).empty());
}

TEST_CASE("the rotated part of heads that do not rotate is not read", "[model]") {
  const Engine usual = load_golden("nemotron_h");
  for (const std::uint32_t dim : {0u, 7u, 100000u}) {
    const Engine engine = changed_model("nemotron_h", [&](GgufWriter& writer) { must(writer.set("nemotron_h.rope.dimension_count", dim)); });
    CHECK(same_bits(logits_of(engine), logits_of(usual)));
  }
  const std::string text = refusal("llama-gqa", [](GgufWriter& writer) { must(writer.set("llama.rope.dimension_count", std::uint32_t{7})); });
  CHECK(text.find("llama.rope.dimension_count") != std::string::npos);
}

TEST_CASE("a variant of an architecture is not taken for the work of another converter", "[model]") {
  // StableLM 2 12B has norms of queries and keys, and no norm before the feed-forward.
  const auto variant = load_changed("stablelm", [](GgufWriter&) {}, {}, {}, {"blk.0.ffn_norm.weight", "blk.0.attn_q_norm.weight"});
  REQUIRE(!variant);
  CHECK(variant.error().text().find("blk.0.ffn_norm.weight") != std::string::npos);
  CHECK(variant.error().text().find("it has blk.0.attn_q_norm.weight, which \"stablelm\" has not") != std::string::npos);
  CHECK(variant.error().text().find("convert") == std::string::npos);
  const auto apart = load_changed("phi3", [](GgufWriter&) {}, {}, {}, {"blk.0.attn_qkv.weight", "blk.0.attn_q.weight"});
  REQUIRE(!apart);
  CHECK(apart.error().text().find("it has blk.0.attn_q.weight instead, as another converter writes it") != std::string::npos);
}

TEST_CASE("what another converter wrote instead of a missing tensor is named", "[model]") {
  const auto old = load_changed("qwen3next", [](GgufWriter&) {}, {}, {}, {"blk.0.attn_qkv.weight", "blk.0.ssm_in.weight"});
  REQUIRE(!old);
  CHECK(old.error().text().find("blk.0.attn_qkv.weight") != std::string::npos);
  CHECK(old.error().text().find("it has blk.0.ssm_in.weight instead") != std::string::npos);
  const auto other = load_changed("qwen3next", [](GgufWriter&) {}, {}, {}, {"blk.0.attn_qkv.weight", "blk.0.anything.weight"});
  REQUIRE(!other);
  CHECK(other.error().text().find("instead") == std::string::npos);
}

TEST_CASE("a model whose activation a backend does not compute is refused before anything is loaded", "[model]") {
  struct Without final : ForwardingBackend {
    explicit Without(ActivationKind kind) : ForwardingBackend(nullptr), lacks(kind) {}
    [[nodiscard]] std::string_view name() const noexcept override { return "other"; }
    [[nodiscard]] bool activates(ActivationKind kind) const noexcept override { return kind != lacks; }
    ActivationKind lacks;
  };
  const auto why = [](const std::string& model, ActivationKind kind) {
    const Status status = detail::check_capabilities(load_golden(model).spec(), Without(kind));
    return status ? std::string() : status.error().text();
  };
  CHECK(why("nemotron_h", ActivationKind::squared_relu).find("backend other does not compute the activation \"squared ReLU\"") != std::string::npos);
  CHECK(why("gpt-oss", ActivationKind::clamped_swiglu).find("\"clamped SwiGLU\"") != std::string::npos);
  CHECK(why("qwen35", ActivationKind::sigmoid).find("\"sigmoid\"") != std::string::npos);  // the gate of its attention
  CHECK(why("nemotron_h", ActivationKind::silu).empty());
  CHECK(why("llama-gqa", ActivationKind::sigmoid).empty());
}

TEST_CASE("a shared expert that a file speaks of has to be there", "[model]") {
  const std::string text = refusal("mixtral", [](GgufWriter& writer) { must(writer.set("llama.expert_shared_count", std::uint32_t{1})); });
  CHECK(text.find("blk.0.ffn_gate_shexp.weight") != std::string::npos);
}

TEST_CASE("a softcap of scores is read, whatever the architecture, and where Gemma 2 says nothing there is one", "[model]") {
  const auto key = [](const char* name, float value) {
    return [=](GgufWriter& writer) { must(writer.set(name, value)); };
  };
  const Engine plain = load_golden("llama-gqa");
  const auto capped = changed_model("llama-gqa", key("llama.attn_logit_softcapping", 0.5f));
  CHECK(capped.spec().layers.front().score_softcap == 0.5f);
  CHECK(!same_bits(logits_of(plain), logits_of(capped)));
  CHECK(same_bits(logits_of(plain), logits_of(changed_model("llama-gqa", key("llama.attn_logit_softcapping", 0.0f)))));

  const Engine silent = must(load_changed(
      "gemma2", [](GgufWriter& writer) { must(writer.set("gemma2.context_length", std::uint32_t{8192})); }, {},
      {"gemma2.attn_logit_softcapping", "gemma2.final_logit_softcapping", "gemma2.attention.sliding_window"}));
  CHECK(silent.spec().logit_softcap == 30.0f);
  CHECK(silent.spec().layers[0].score_softcap == 50.0f);
  CHECK(silent.spec().layers[0].window == 4096);
  CHECK(silent.spec().layers[1].window == 0);
}

TEST_CASE("explain names the parts of attention that a model has, and no others", "[model]") {
  const auto names = [](const char* model) {
    std::vector<std::string> all;
    const Engine engine = load_golden(model);
    for (const KernelUse& use : must(engine.explain())) {
      if (use.operation == "softcap of scores" || use.operation == "sink logits") all.push_back(use.operation);
    }
    return all;
  };
  CHECK(names("gemma2") == std::vector<std::string>{"softcap of scores"});
  CHECK(names("gpt-oss") == std::vector<std::string>{"sink logits"});
  CHECK(names("llama-gqa").empty());
}

TEST_CASE("layers that guess further tokens are left out", "[model]") {
  const ModelFile file = must(ModelFile::open(golden_dir() / "glm4moe.gguf"));
  CHECK(file.find_tensor("blk.3.nextn.enorm.weight") != nullptr);
  const Engine engine = load_golden("glm4moe");
  CHECK(engine.spec().n_layers() == 3);
  CHECK(engine.spec().layers[0].ffn == Ffn::gated);
  CHECK(engine.spec().layers[1].ffn == Ffn::experts);
  const auto left_out = [](const Engine& of) -> std::string {
    for (const KernelUse& use : must(of.explain())) {
      if (use.kind == Operation::guess_tokens) return use.kernel;
    }
    return "";
  };
  CHECK(left_out(engine) == "left out: 1 of the file's layers");
  CHECK(left_out(load_golden("llama-gqa")).empty());
  for (const std::string name : {"qwen35", "qwen35moe", "qwen3next", "deepseek-v3"}) {
    const Engine usual = load_golden(name);
    const std::string prefix = usual.spec().architecture;
    const Engine with_further = changed_model(name, [&](GgufWriter& writer) {
      must(writer.set(prefix + ".block_count", usual.spec().n_layers() + 2));
      must(writer.set(prefix + ".nextn_predict_layers", std::uint32_t{2}));
    });
    INFO(name);
    CHECK(with_further.spec().n_layers() == usual.spec().n_layers());
    CHECK(left_out(with_further) == "left out: 2 of the file's layers");
    CHECK(same_bits(logits_of(with_further), logits_of(usual)));
  }
  const std::string text = refusal("glm4moe", [](GgufWriter& writer) { must(writer.set("glm4moe.nextn_predict_layers", std::uint32_t{0})); });
  CHECK(text.find("blk.3.") != std::string::npos);
}

TEST_CASE("latent attention of a file from before attn_kv_b was split is refused, and so are sizes that do not fit together", "[model]") {
  const auto old = load_changed("deepseek-v2", [](GgufWriter&) {}, {}, {"deepseek2.attention.key_length_mla"});
  REQUIRE(!old);
  CHECK(old.error().text().find("key_length_mla") != std::string::npos);
  CHECK(old.error().text().find("convert the model again") != std::string::npos);
  const auto check = [](const char* key, std::uint32_t value) {
    const std::string text = refusal("deepseek-v2", [&](GgufWriter& writer) { must(writer.set(key, value)); });
    INFO(text);
    CHECK(text.find("deepseek2.attention.") != std::string::npos);
  };
  check("deepseek2.attention.head_count_kv", 2);
  check("deepseek2.attention.kv_lora_rank", 3);
  check("deepseek2.attention.key_length_mla", 4);
  check("deepseek2.attention.value_length", 4);
}

TEST_CASE("queries grow by the context that the file names, or by that of the first training", "[model]") {
  const auto logits_with = [](const char* model, const char* key, auto value) {
    return logits_of(changed_model(model, [=](GgufWriter& writer) { must(writer.set(key, value)); }), 40);
  };
  const auto usual = logits_of(load_golden("mistral4"), 40);
  CHECK(same_bits(usual, logits_with("mistral4", "mistral4.attention.temperature_length", std::uint32_t{16})));
  CHECK(!same_bits(usual, logits_with("mistral4", "mistral4.attention.temperature_length", std::uint32_t{12})));
  CHECK(!same_bits(usual, logits_with("mistral4", "mistral4.attention.temperature_scale", 0.0f)));
  CHECK(!same_bits(logits_of(load_golden("deepseek-v3"), 40),
                   logits_with("deepseek-v3", "deepseek2.attention.temperature_scale", 0.3f)));  // Mistral Large 3's
}

TEST_CASE("attention and FFN run in parallel only in architectures that can do both", "[model]") {
  CHECK(load_golden("gptneox").spec().wiring == Wiring::parallel);
  CHECK(load_golden("gptneox-sequential").spec().wiring == Wiring::sequential);
  const std::string parallel = refusal("olmo2", [](GgufWriter& writer) { must(writer.set_boolean("olmo2.use_parallel_residual", true)); });
  CHECK(parallel.find("with attention and FFN in parallel") != std::string::npos);
  const std::string sequential = refusal("falcon-7b", [](GgufWriter& writer) { must(writer.set_boolean("falcon.use_parallel_residual", false)); });
  CHECK(sequential.find("with attention before the FFN") != std::string::npos);
}

TEST_CASE("experts in a narrower vector have the products that lead there and back, and those alone", "[model]") {
  const Engine engine = load_golden("nemotron_h_moe-narrow");
  CHECK(engine.spec().layers[2].ffn == Ffn::plain_experts);
  CHECK(engine.spec().layers[2].expert_width == 20);
  CHECK(load_golden("nemotron_h_moe").spec().layers[1].expert_width == 0);
  const std::string wider = refusal("nemotron_h_moe-narrow", [](GgufWriter& writer) {
    must(writer.set("nemotron_h_moe.moe_latent_size", std::uint32_t{32}));
  });
  CHECK(wider.find("blk.2.ffn_latent_down.weight") != std::string::npos);
  const auto none = load_changed("nemotron_h_moe-narrow", [](GgufWriter&) {}, {}, {"nemotron_h_moe.moe_latent_size"});
  REQUIRE(!none);
  CHECK(none.error().text().find("blk.2.") != std::string::npos);
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

}  // namespace test_model_settings
