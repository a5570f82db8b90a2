// Budgets of tokens on CUDA: rows vote on the device, and the tokens that are kept are those that the CPU keeps.
#include "cuda/backend/rig.hpp"
#include "engine/kv_twins.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

EngineOptions with_budget(EngineOptions options, TokenChoice choice) {
  options.kv.dtype = DType::f32;
  options.kv.page_tokens = 16;
  options.kv.budget = {.tokens = 160, .choice = choice, .sinks = 3};
  return options;
}

}  // namespace

TEST_CASE("a budget keeps the tokens that it keeps on the CPU", "[cuda]") {
  for (const TokenChoice choice : {TokenChoice::h2o, TokenChoice::snapkv}) {
    const Engine cuda = load_golden("llama-long", with_budget(on_cuda({.numerics = Numerics::invariant}), choice));
    const Engine cpu = load_golden("llama-long", with_budget(on_reference(), choice));
    const auto tokens = make_tokens(3, 230, cuda.spec().vocab_size);
    const auto appended = [&](const Engine& engine, std::size_t chunk) {
      Session session = must(engine.session());
      for (std::size_t at = 0; at < tokens.size(); at += chunk) {
        must(session.append(std::span(tokens).subspan(at, std::min(chunk, tokens.size() - at))));
      }
      return session;
    };
    for (const std::size_t chunk : {7u, 60u}) {  // tokens are dropped between two calls, so the calls must be the same
      const Session ours = appended(cuda, chunk), theirs = appended(cpu, chunk);
      INFO(static_cast<int>(choice) << ", " << chunk << " tokens at a time");
      CHECK(theirs.tokens().size() <= 160);
      CHECK(std::ranges::equal(ours.tokens(), theirs.tokens()));
      CHECK(relative_difference(ours.logits(), theirs.logits()) <= 1e-3f);
    }
    if (!on_real_device()) CHECK(tessera_emulator_launches("count_votes_f32") > 0);
  }
}
