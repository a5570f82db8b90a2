// Every allocation of a generation with trees of drafts fails once: the tokens come without those drafts, or there is an error and
// the session is as it was; nothing is held afterwards.
#include "counted_new.hpp"

#include "decoding/speculation_rig.hpp"

namespace test_draft_tree_faults {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("any allocation of a step with a tree may fail", "[speculation]") {
  const Engine engine = load_golden("llama-gqa", {.kv = {.page_tokens = 16}, .threads = 1});
  const std::uint32_t vocab = engine.spec().vocab_size;
  const auto prompt = make_tokens(4, 13, vocab);
  RequestKind kind = request_kinds()[1];
  kind.options.max_tokens = 9;
  std::vector<Token> sequence;
  Told plain;
  std::optional<Snapshot> end;
  {
    Session session = must(engine.session());
    must(session.append(prompt));
    Sampler sampler = kind.sampler(engine);
    for (const auto& piece : session.generate(sampler, kind.options)) plain.add(must(Result<Piece>(piece)));
    sequence.assign(session.tokens().begin(), session.tokens().end());
    end.emplace(session);
  }
  std::size_t trees = 0;
  std::int64_t fail = 0;
  for (;; ++fail) {
    CAPTURE(fail);
    const auto grow = must(bush(vocab, sequence)->start(engine));
    Session session = must(engine.session());
    must(session.append(prompt));
    Sampler sampler = kind.sampler(engine);
    GenerateOptions how = kind.options;
    how.speculate = {.drafter = grows([&](const DraftContext& context, std::span<TreeDraft> out) {
                       const counted::Pause pause;
                       return must(grow->propose_tree(context, out));
                     }),
                     .max_drafts = 8,
                     .length = DraftLength::longest,
                     .branches = 4};
    Told told;
    bool was_hit = false;
    {
      std::optional<Generation> generation = session.generate(sampler, how);
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
          told.add(**piece);
          continue;
        }
        CHECK(piece->error().code() == ErrorCode::out_of_memory);
        break;
      }
      trees += generation->figures().drafted;
    }
    CHECK(must(session.verify()).verdict == Verdict::same);
    if (told.tokens.size() < plain.tokens.size()) {  // it goes on from there
      how.speculate = {};
      how.max_tokens = plain.tokens.size() - told.tokens.size();
      for (const auto& piece : session.generate(sampler, how)) told.add(must(Result<Piece>(piece)));
    }
    CHECK(told.tokens == plain.tokens);
    CHECK(Snapshot(session).tokens == end->tokens);
    CHECK(Snapshot(session).checksums == end->checksums);
    CHECK(session.kv().bytes() == end->kv_bytes);
    if (!was_hit) break;
  }
  engine.trim();
  CHECK(engine.kv_figures().used_bytes == 0);
  CHECK(fail > 20);
  CHECK(trees > 50);
}

}  // namespace test_draft_tree_faults
