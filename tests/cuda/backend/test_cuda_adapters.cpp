// Adapters on CUDA: what the CPU computes with the same adapter, and a row's bits whatever its neighbours use.
#include "cuda/backend/rig.hpp"
#include "engine/made_adapter.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

bool is_plain(std::string_view name) { return name.find("_exps") == name.npos; }

std::vector<Token> tokens_for(const Engine& engine, std::size_t n) {
  std::vector<Token> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<Token>((1 + 7 * i) % engine.spec().vocab_size);
  return tokens;
}

Session session_with(const Engine& engine, std::vector<AdapterUse> uses) {
  SessionOptions options;
  options.kv.dtype = DType::f32;
  options.kv.prefix = PrefixReuse::off;
  options.adapters = std::move(uses);
  return must(engine.session(options));
}

std::vector<float> logits_with(const Engine& engine, std::span<const Token> tokens, std::vector<AdapterUse> uses) {
  Session session = session_with(engine, std::move(uses));
  const Logits logits = must(session.append(tokens, {.logits = LogitsOf::all}));
  return {logits.values.begin(), logits.values.end()};
}

}  // namespace

TEST_CASE("adapters change the products and tables of every kind of model as on the CPU", "[cuda]") {
  const AdapterFolder folder;
  for (const char* name : {"llama-gqa", "qwen2moe", "qwen35", "deepseek-v2-lite", "gemma3", "gpt2"}) {
    const auto path = golden_dir() / (std::string(name) + ".gguf");
    if (!std::filesystem::exists(path)) continue;
    DYNAMIC_SECTION(name) {
      const ModelFile file = must(ModelFile::open(path));
      const Engine cuda = must(Engine::load(file, on_cuda())), cpu = must(Engine::load(file, on_reference()));
      for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
        const MadeAdapter how{.rank = type == DType::f16 ? 17u : 3u, .dtype = type, .alpha = 6.0f, .seed = 5, .size = 0.1f, .takes = is_plain};
        const auto adapter = folder.write(std::string(name) + std::string(to_string(type)), file, how);
        const auto tokens = tokens_for(cuda, 24);
        const auto ours = logits_with(cuda, tokens, {{must(cuda.adapter(adapter)), 0.7f}});
        const auto theirs = logits_with(cpu, tokens, {{must(cpu.adapter(adapter)), 0.7f}});
        CHECK(relative_difference(ours, theirs) <= tolerance_of_kv(DType::f32));
        CHECK(relative_difference(logits_with(cpu, tokens, {}), theirs) > 1e-3f);
      }
    }
  }
}

TEST_CASE("adapters of experts are refused by name on CUDA", "[cuda]") {
  const AdapterFolder folder;
  const ModelFile file = must(ModelFile::open(golden_dir() / "qwen2moe.gguf"));
  const Engine engine = must(Engine::load(file, on_cuda()));
  const auto refused = engine.adapter(folder.write("experts", file, {.rank = 2}));
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::unsupported);
  CHECK_THAT(refused.error().text(), Catch::Contains("backend cuda does not change the products of experts"));
}

TEST_CASE("a row's bits do not depend on its neighbours' adapters on CUDA", "[cuda]") {
  const AdapterFolder folder;
  const ModelFile file = must(ModelFile::open(golden_dir() / "llama-gqa.gguf"));
  const Engine engine = must(Engine::load(file, on_cuda({.numerics = Numerics::invariant})));
  std::vector<Adapter> adapters;
  for (const std::uint32_t rank : {1u, 8u, 40u}) {
    adapters.push_back(must(engine.adapter(folder.write("rank" + std::to_string(rank), file, {.rank = rank, .seed = rank, .takes = is_plain}))));
  }
  const std::vector<std::vector<AdapterUse>> sets = {{}, {{adapters[0]}}, {{adapters[1], -0.5f}}, {{adapters[2]}, {adapters[1], 2.0f}}, {{adapters[2], 0.0f}}};
  const auto tokens = tokens_for(engine, 20);
  std::vector<Session> together;
  Batch batch;
  for (const auto& set : sets) together.push_back(session_with(engine, set));
  for (Session& session : together) must(batch.add(session, tokens));
  const Outputs outputs = must(engine.forward(batch));
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const auto alone = logits_with(engine, tokens, sets[i]);
    const auto last = std::span(alone).last(engine.spec().vocab_size);
    CHECK(same_bits(outputs.row((i + 1) * tokens.size() - 1), last));
  }
  const auto row = [&](std::size_t i) { return outputs.row((i + 1) * tokens.size() - 1); };
  CHECK(same_bits(row(0), row(4)));
  CHECK(!same_bits(row(0), row(1)));
}
