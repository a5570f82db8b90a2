// Every allocation of a generation with early exits fails once: there is an error, the session is as it was, and nothing is held afterwards.
#include "counted_new.hpp"

#include "decoding/speculation_rig.hpp"

namespace test_early_exit_faults {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("any allocation of a generation with early exits may fail", "[exit]") {
  const Engine engine = load_golden("llama-gqa", {.kv = {.page_tokens = 16}, .threads = 1});
  const auto prompt = make_tokens(4, 13, engine.spec().vocab_size);
  RequestKind kind = request_kinds()[1];
  kind.options.max_tokens = 9;
  kind.options.early_exit = {.layers = 1, .confidence = 1e-6f, .most_in_row = 3};
  const Outcome plain = generated(engine, kind, prompt, {});
  REQUIRE(plain.figures.exited > 0);
  std::int64_t fail = 0;
  for (;; ++fail) {
    CAPTURE(fail);
    Session session = must(engine.session());
    must(session.append(prompt));
    Sampler sampler = kind.sampler(engine);
    std::vector<Token> tokens;
    bool was_hit = false;
    {
      std::optional<Generation> generation = session.generate(sampler, kind.options);
      for (;;) {
        std::optional<Result<Piece>> piece;
        {
          counted::Scope scope(fail);
          piece = generation->next();
          scope.stop();
          was_hit = was_hit || counted::failed > 0;
        }
        if (!piece) break;
        if (*piece) {
          tokens.push_back((*piece)->token);
          continue;
        }
        CHECK(piece->error().code() == ErrorCode::out_of_memory);
        break;
      }
    }
    CHECK(must(session.verify()).verdict == Verdict::same);
    REQUIRE(tokens.size() <= plain.told.tokens.size());
    CHECK(std::ranges::equal(tokens, std::span(plain.told.tokens).first(tokens.size())));
    if (!was_hit) {
      CHECK(tokens == plain.told.tokens);
      break;
    }
  }
  engine.trim();
  CHECK(engine.kv_figures().used_bytes == 0);
  CHECK(fail > 5);
}

}  // namespace test_early_exit_faults
