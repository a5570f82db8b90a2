// Adapters: what they add to each product, in every kind of model; rows of different adapters in one step; and what follows a session:
// forks, files, prefixes, changes of its adapters.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "engine/made_adapter.hpp"

#include "catch.hpp"

namespace test_adapters {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<Token> tokens_for(const Engine& engine, std::size_t n, Token first = 1) {
  std::vector<Token> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<Token>((static_cast<std::size_t>(first) + 7 * i) % engine.spec().vocab_size);
  return tokens;
}

std::vector<float> all_logits(Session& session, std::span<const Token> tokens) {
  const Logits logits = must(session.append(tokens, {.logits = LogitsOf::all}));
  return {logits.values.begin(), logits.values.end()};
}

std::vector<float> all_logits(const Engine& engine, std::span<const Token> tokens, std::vector<AdapterUse> adapters = {}) {
  Session session = must(engine.session({.adapters = std::move(adapters)}));
  return all_logits(session, tokens);
}

double greatest_difference(std::span<const float> a, std::span<const float> b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

bool in_layers(std::string_view name) { return name.starts_with("blk."); }

EngineOptions with_reference() { return {.kv = {.dtype = DType::f32}, .threads = 2}; }

}  // namespace

TEST_CASE("An adapter is added to the products of every kind of layer", "[adapters]") {
  const AdapterFolder folder;
  for (const std::string& name : representative_models()) {
    INFO(name);
    const ModelFile file = must(ModelFile::open(golden_dir() / (name + ".gguf")));
    if (std::ranges::any_of(file.tensors(), [](const TensorInfo& tensor) { return can_be_adapted(tensor) && tensor.dtype != DType::f32; })) continue;
    const MadeAdapter how{.rank = 3, .alpha = 6.0f, .seed = 5, .size = 0.1f, .takes = in_layers};
    const Engine engine = must(Engine::load(file, with_reference()));
    const Adapter adapter = must(engine.adapter(folder.write(name, file, how)));
    CHECK(adapter.rank() == 3);
    CHECK(adapter.matrices() > 0);
    const std::vector<Token> tokens = tokens_for(engine, std::min<std::size_t>(12, engine.plan().context));
    const auto without = all_logits(engine, tokens), with = all_logits(engine, tokens, {{.adapter = adapter, .scale = 0.7f}});
    const auto expected = all_logits(must(Engine::load(merged(file, how, 0.7f).file(), with_reference())), tokens);
    const double changes = greatest_difference(without, expected);
    CHECK(changes > 1e-3);
    CHECK(greatest_difference(with, expected) < 1e-4 + 1e-3 * changes);
  }
}

}  // namespace test_adapters
