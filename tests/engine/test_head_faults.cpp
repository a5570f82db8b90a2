// Draft heads where memory is short: every allocation of loading them and of drafting with them fails once. An error, nothing changed, nothing
// leaked, and the tokens are the same.
#include "counted_new.hpp"

#include <tessera/decoding/drafters.hpp>

#include "engine/faulty_memory.hpp"
#include "engine/head_models.hpp"
#include "engine/models.hpp"

namespace test_head_faults {

using namespace tessera;
using namespace tessera::test;
using counted::Failure;

namespace {

constexpr Failure kFailures[] = {Failure::once, Failure::from_then_on};
constexpr std::size_t kTokens = 6;

EngineOptions options_of(const HeadCase& heads, FaultyMemory& memory) {
  EngineOptions options = with_heads(heads);
  options.step_rows = 8;
  options.memory = &memory;
  return options;
}

Sampler some_stages() { return sampling::chain().penalties({.repetition = 1.1f}).top_k(40).temperature(0.9f).seed(7).build(); }

GenerateOptions drafted(std::size_t n, std::uint32_t branches) {
  return {.max_tokens = n, .end_of_generation = EndOfGeneration::ignore,
          .speculate = {.drafter = must(head_drafter()), .max_drafts = 4, .length = DraftLength::longest, .branches = branches}};
}

}  // namespace

TEST_CASE("loading draft heads: any allocation may fail", "[faults][heads]") {
  for (const HeadCase& heads : head_cases()) {
    if (heads.model != "llama-gqa") continue;
    FaultyMemory memory;
    const EngineOptions options = options_of(heads, memory);
    const auto path = golden_dir() / (heads.model + ".gguf");
    const Engine engine = must(Engine::load(path, options));
    const std::size_t before = memory.live;
    for (const Failure mode : kFailures) {
      std::int64_t survived = 0;
      for (std::int64_t k = 0;; ++k) {
        INFO(heads.name() << ", allocation " << k << (mode == Failure::once ? " alone" : " and all after"));
        counted::Scope scope(k, mode);
        {
          auto loaded = Engine::load(path, options);
          scope.stop();
          const bool was_hit = counted::failed > 0;
          if (loaded && !was_hit) break;
          if (loaded) {
            ++survived;
          } else if (loaded.error().code() != ErrorCode::out_of_memory) {
            FAIL(loaded.error().text());
          }
        }
        REQUIRE(memory.live == before);
        if (counted::live != 0) FAIL(counted::live << " bytes are leaked");
      }
      CHECK(survived <= 4);  // allocations that can be done without
    }
  }
}

TEST_CASE("drafting with heads: any allocation may fail, and the tokens are the same", "[faults][heads]") {
  for (const std::size_t i : {0u, 1u, 2u}) {
    FaultyMemory memory;
    const Engine engine = must(Engine::load(golden_dir() / "llama-gqa.gguf", options_of(head_cases()[i], memory)));
    const std::vector<Token> prompt{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    Session reference = must(engine.session());
    must(reference.append(prompt));
    Sampler reference_sampler = some_stages();
    GenerateOptions plain = drafted(kTokens, 1);
    plain.speculate = {};
    must(reference.generate(reference_sampler, plain, {}));
    must(reference.append({}));
    const Snapshot expected(reference);
    for (const std::uint32_t branches : {1u, 3u}) {
      for (const Failure mode : kFailures) {
        for (std::int64_t k = 0, done = 0; done == 0; ++k) {
          INFO(head_cases()[i].name() << ", " << branches << " branches, allocation " << k << (mode == Failure::once ? " alone" : " and all after"));
          Session session = must(engine.session());
          must(session.append(prompt));
          Sampler sampler = some_stages();
          const GenerateOptions first_try = drafted(kTokens, branches);
          {
            counted::Scope scope(k, mode);
            Generation generation = session.generate(sampler, first_try);
            while (auto piece = generation.next()) {
              if (!*piece && piece->error().code() != ErrorCode::out_of_memory) FAIL(piece->error().text());
            }
            done = counted::failed == 0 ? 1 : 0;
          }
          const std::size_t delivered = session.tokens().size() - prompt.size();
          if (delivered < kTokens) must(session.generate(sampler, drafted(kTokens - delivered, branches), {}));
          must(session.append({}));
          REQUIRE(Snapshot(session) == expected);
        }
      }
    }
  }
}

}  // namespace test_head_faults
