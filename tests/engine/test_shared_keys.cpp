// Models in which layers share keys and values, and in which each layer gets a vector of each token (Gemma 4).
#include "engine/changed_model.hpp"

namespace test_shared_keys {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("layers that share keys and values share their place in the cache", "[model]") {
  const Engine engine = load_golden("gemma4-e");
  const std::vector<LayerSpec>& layers = engine.spec().layers;
  REQUIRE(layers.size() == 6);
  for (const std::size_t own : {0, 1, 2}) CHECK(layers[own].keys_of == kOwnKeys);
  CHECK(layers[3].keys_of == 2);
  CHECK(layers[4].keys_of == 2);
  CHECK(layers[5].keys_of == 1);
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  const KvLayout& layout = session.kv().layout();
  CHECK(layout.layers[3] == layout.layers[2]);
  CHECK(layout.layers[5] == layout.layers[1]);
  CHECK(layout.layers[5] != layout.layers[2]);
  // Heads of 8 in two windowed layers, of 12 in one that sees everything; two KV heads, keys and values of f32.
  CHECK(layout.bytes_per_token() == 2 * 2 * 4 * (8 + 8 + 12));
}

TEST_CASE("layers cannot be computed without those whose keys and values they read", "[model]") {
  const auto refusal = [](const char* model, std::uint32_t first, std::uint32_t last) -> std::string {
    const Engine engine = load_golden(model);
    Session session = must(engine.session());
    const std::vector<float> embedding(engine.spec().d_model, 0.5f);
    Batch batch;
    must(batch.add(session, Row{.embedding = embedding, .want = Want::hidden}));
    const auto outputs = engine.forward(batch, {.first_layer = first, .last_layer = last});
    return outputs ? "" : outputs.error().text();
  };
  CHECK(refusal("gemma4-e", 3, 6).find("layers from 3 on") != std::string::npos);
  CHECK(refusal("gemma4-v-is-k", 1, 3).empty());
}

TEST_CASE("what a file says of shared keys and values must fit", "[model]") {
  const auto text_of = [](std::uint32_t shared) {
    const auto engine = load_changed("gemma4-e", [&](GgufWriter& writer) { must(writer.set("gemma4.attention.shared_kv_layers", shared)); });
    REQUIRE(!engine);
    return engine.error().text();
  };
  CHECK(text_of(6).find("gemma4.attention.shared_kv_layers") != std::string::npos);
  CHECK(text_of(5).find("layer 1 shares") != std::string::npos);  // the first that sees everything
  const auto elsewhere = load_changed("gemma3", [&](GgufWriter& writer) {
    must(writer.set("gemma3.attention.shared_kv_layers", std::uint32_t{2}));
  });
  REQUIRE(!elsewhere);
  CHECK(elsewhere.error().text().find("attention.shared_kv_layers") != std::string::npos);
}

TEST_CASE("a plan knows what Gemma 4 takes", "[model]") {
  for (const char* name : {"gemma4-e", "gemma4-v-is-k", "gemma4-moe"}) {
    const ModelFile file = must(ModelFile::open(golden_dir() / (std::string(name) + ".gguf")));
    const Plan plan = must(Engine::plan(file));
    const Engine engine = load_golden(name);
    CHECK(engine.plan().weights == plan.weights);
  }
}

}  // namespace test_shared_keys
