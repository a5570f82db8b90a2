// Models that were made smaller: layers that share weights, and layers of different shapes.
#include <cmath>
#include <numeric>

#include "engine/made_model.hpp"

namespace test_smaller_models {

using namespace tessera;
using namespace tessera::test;

namespace {

std::filesystem::path folder() { return golden_dir() / "smaller"; }

// A model in memory that is made of another one: the layers with numbers in `owners` have the weights of these layers.
enum class Weights { shared, written_out };
std::vector<std::byte> with_owners(const ModelFile& file, const std::vector<std::int32_t>& owners, Weights weights) {
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata().entries()) must(writer.copy(entry));
  if (weights == Weights::shared) must(writer.set_array("tessera.weights_of", std::span(owners)));
  std::vector<std::pair<std::string, const GgufTensor*>> tensors;  // the name, and the tensor whose data it has
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.name.starts_with("blk.")) tensors.emplace_back(tensor.name, &tensor);
  }
  for (std::size_t layer = 0; layer < owners.size(); ++layer) {
    if (weights == Weights::shared && owners[layer] != static_cast<std::int32_t>(layer)) continue;
    const std::string begin = "blk." + std::to_string(owners[layer]) + ".";
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.name.starts_with(begin)) tensors.emplace_back("blk." + std::to_string(layer) + "." + std::string(tensor.name.substr(begin.size())), &tensor);
    }
  }
  for (const auto& [name, tensor] : tensors) must(writer.add_tensor(name, tensor->dtype, std::span(tensor->dims).first(tensor->n_dims)));
  std::vector<std::byte> bytes;
  std::size_t next = 0;
  must(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return {};
      },
      [&](std::string_view, const ByteSink& write) -> Status {
        const GgufTensor& tensor = *tensors[next++].second;
        std::vector<std::byte> data(tensor.bytes);
        must(file.read(tensor, 0, data));
        return write(data);
      }));
  return bytes;
}

std::vector<float> logits_of(const Engine& engine, const std::vector<Token>& tokens, std::size_t chunk = 7) {
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  return all_logits(session, tokens, chunk);
}

std::string refusal(const ModelFile& file, const std::vector<std::int32_t>& owners, Weights weights, EngineOptions options = {}) {
  const std::vector<std::byte> bytes = with_owners(file, owners, weights);
  const auto engine = Engine::load(must(ModelFile::from_memory(bytes)), options);
  return engine ? "" : engine.error().text();
}

void check_close(const Engine& engine, const std::string& name) {
  const std::vector<float> expected = read_floats(folder() / (name + ".f32"));
  const std::vector<float> logits = logits_of(engine, read_tokens(folder() / "tokens.txt"));
  REQUIRE(logits.size() == expected.size());
  float most = 0.0f;
  for (std::size_t i = 0; i < logits.size(); ++i) most = std::max(most, std::abs(logits[i] - expected[i]));
  CHECK(most < 1e-4f);
}

}  // namespace

TEST_CASE("layers that share weights compute as if each had a copy", "[model]") {
  for (const DType dtype : {DType::f32, DType::q4_0, DType::q6_k}) {
    const MadeModel made = make_model({.d_model = 256, .layers = 6, .heads = 8, .kv_heads = 2, .ffn = 512, .vocab = 200, .context = 128}, dtype);
    const ModelFile file = made.file();
    for (const std::vector<std::int32_t>& owners : {std::vector<std::int32_t>{0, 0, 0, 3, 3, 3}, {0, 1, 0, 1, 0, 1}, {0, 0, 0, 0, 0, 0}, {0, 1, 2, 2, 4, 0}}) {
      const std::vector<std::byte> one = with_owners(file, owners, Weights::shared), copies = with_owners(file, owners, Weights::written_out);
      const Engine shared = must(Engine::load(must(ModelFile::from_memory(one)), {.threads = 2}));
      const Engine written = must(Engine::load(must(ModelFile::from_memory(copies)), {.threads = 2}));
      const std::vector<Token> tokens = made_tokens(40, 200, 5);
      CHECK(same_bits(logits_of(shared, tokens), logits_of(written, tokens)));
      // Each layer has keys and values of its own; the weights are there once, and are read by each layer.
      CHECK(shared.plan().kv == written.plan().kv);
      CHECK(shared.plan().weights < written.plan().weights);
      CHECK(shared.plan().weights_per_token == written.plan().weights_per_token);
      CHECK(must(Engine::plan(must(ModelFile::from_memory(one)))).weights == shared.plan().weights);
      CHECK(one.size() < copies.size());
    }
  }
}

TEST_CASE("weights of shared layers take the memory of one layer", "[model]") {
  const MadeModel made = make_model({.d_model = 256, .layers = 4, .vocab = 200, .context = 128}, DType::q4_0);
  const ModelFile file = made.file();
  const auto weights = [&](const std::vector<std::int32_t>& owners) {
    const std::vector<std::byte> bytes = with_owners(file, owners, Weights::shared);
    return must(Engine::plan(must(ModelFile::from_memory(bytes)))).weights;
  };
  const std::uint64_t four = weights({0, 1, 2, 3}), two = weights({0, 0, 2, 2}), one = weights({0, 0, 0, 0});
  CHECK(four - two == 2 * (two - one));
}

TEST_CASE("a list of shared weights must fit the model", "[model]") {
  const MadeModel made = make_model({.d_model = 256, .layers = 3, .vocab = 200, .context = 128}, DType::q4_0);
  const ModelFile file = made.file();
  CHECK(refusal(file, {0, 0}, Weights::shared).find("tessera.weights_of") != std::string::npos);
  CHECK(refusal(file, {0, 2, 2}, Weights::shared).find("layer 1 uses the weights of layer 2") != std::string::npos);
  CHECK(refusal(file, {0, 0, 1}, Weights::shared).find("layer 2 uses the weights of layer 1") != std::string::npos);
  CHECK(refusal(file, {0, -1, 2}, Weights::shared).find("layer 1 uses the weights of layer -1") != std::string::npos);
  CHECK(refusal(file, {0, 0, 2}, Weights::shared, {.ranks = 2}).find("share weights") != std::string::npos);
  CHECK(refusal(file, {0, 0, 2}, Weights::written_out).empty());
}

TEST_CASE("layers of other shapes share no weights", "[model]") {
  const ModelFile file = must(ModelFile::open(folder() / "pruned.gguf"));
  CHECK(refusal(file, {0, 0, 2}, Weights::shared).find("another shape") != std::string::npos);
}

TEST_CASE("a folder says by groups which layers share weights", "[model]") {
  const Engine engine = must(Engine::load(folder() / "shared", {.tokenizer = TokenizerUse::none, .threads = 2}));
  REQUIRE(engine.spec().n_layers() == 5);
  const std::vector<std::uint32_t> back{0, 1, 2, 0, 1};
  for (std::size_t i = 0; i < back.size(); ++i) CHECK(engine.spec().layers[i].weights_back == back[i]);
  check_close(engine, "shared");
}

TEST_CASE("layers may have different numbers of heads and columns", "[model]") {
  const Engine engine = must(Engine::load(folder() / "pruned.gguf", {.tokenizer = TokenizerUse::none, .threads = 2}));
  const std::vector<LayerSpec>& layers = engine.spec().layers;
  REQUIRE(layers.size() == 3);
  CHECK(layers[1].n_heads == 2);
  CHECK(layers[2].n_kv_heads == 4);
  CHECK(layers[1].ffn_dim == 24);
  check_close(engine, "pruned");
  CHECK(must(Engine::plan(must(ModelFile::open(folder() / "pruned.gguf")), {.tokenizer = TokenizerUse::none})).weights == engine.plan().weights);
}

}  // namespace test_smaller_models
