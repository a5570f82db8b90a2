// Measures the time to draw a token, by sampler chain, size of the vocabulary and shape of the logits. "flat": all tokens are about equally
// likely. "steep": a few tokens have nearly all of the probability, as in a trained model.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <tessera/sampling/chain.hpp>

namespace {

using tessera::Sampler;
using tessera::sampling::chain;

std::vector<float> make_logits(std::size_t vocabulary, float spread) {
  std::mt19937 random(7);
  std::vector<float> logits(vocabulary);
  for (float& logit : logits) {
    float bell = -4.0f;
    for (int i = 0; i < 8; ++i) bell += static_cast<float>(random() >> 8) * 0x1p-24f;
    logit = bell * spread;
  }
  return logits;
}

void draw(benchmark::State& state, Sampler (*make)(), float spread) {
  const auto logits = make_logits(static_cast<std::size_t>(state.range(0)), spread);
  Sampler sampler = make();
  std::uint64_t position = 0;
  for (auto _ : state) {
    const auto token = sampler.sample(logits, {}, position++);
    if (!token) return state.SkipWithError(token.error().text().c_str());
    benchmark::DoNotOptimize(*token);
  }
}

struct Named {
  const char* name;
  Sampler (*make)();
};

constexpr Named kChains[] = {
    {"greedy", [] { return chain().greedy().build(); }},
    {"temperature", [] { return chain().temperature(0.8f).build(); }},
    {"temperature,top_p", [] { return chain().temperature(0.8f).top_p(0.95f).build(); }},
    {"top_k,top_p", [] { return chain().top_k(40).top_p(0.95f).temperature(0.8f).build(); }},
    {"min_p", [] { return chain().temperature(0.8f).min_p(0.05f).build(); }},
    {"typical_p", [] { return chain().typical_p(0.95f).build(); }},
};

}  // namespace

int main(int argc, char** argv) {
  for (const auto& [name, make] : kChains) {
    for (const auto& [shape, spread] : {std::pair{"flat", 0.2f}, std::pair{"steep", 4.0f}}) {
      benchmark::RegisterBenchmark((std::string(name) + "/" + shape).c_str(), draw, make, spread)
          ->Arg(32'000)->Arg(151'936)->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
