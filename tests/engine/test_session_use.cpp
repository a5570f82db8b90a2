// A session is changed by one call at a time: another one is told so, whoever makes it. Those that only read it may be
// many.
#include <atomic>
#include <thread>

#include "engine/models.hpp"

namespace test_session_use {

using namespace tessera;
using namespace tessera::test;

namespace {

const std::vector<Token> kPrompt = {5, 7, 11, 13, 17, 19, 23, 29, 31, 37};

Sampler greedy() { return sampling::chain().greedy().build(); }

template <class T>
bool is_in_use(const Result<T>& result) {
  return !result && result.error().code() == ErrorCode::invalid_state;
}

// Everything that changes a session is refused.
bool refuses_changes(Session& session) {
  Sampler sampler = greedy();
  auto generation = session.generate(sampler, {.max_tokens = 1});
  const auto piece = generation.next();
  return is_in_use(session.append(kPrompt)) && is_in_use(session.append({})) && is_in_use(session.score(kPrompt)) &&
         is_in_use(session.add_pending(3)) && is_in_use(session.truncate(1)) && is_in_use(session.clear()) &&
         is_in_use(session.remove(0, 1)) && is_in_use(session.keep_window(1, 1)) && is_in_use(session.suspend()) &&
         is_in_use(session.prefetch()) && is_in_use(session.resume()) && piece && is_in_use(*piece) &&
         is_in_use(TextStream::create(session)) && !generation.next();
}

}  // namespace

TEST_CASE("a session's own callbacks cannot change it", "[use]") {
  const Engine engine = load_golden("llama-gqa", {.step_rows = 4});
  Session plain = must(engine.session());
  must(plain.append(kPrompt));
  const Snapshot expected(plain);
  Session session = must(engine.session());
  std::size_t calls = 0;
  const auto progress = [&](std::size_t, std::size_t) {
    ++calls;
    CHECK(refuses_changes(session));
    CHECK(is_in_use(session.fork()));
    CHECK(is_in_use(session.verify()));
    Batch batch;
    must(batch.add(session, kPrompt));
    CHECK(is_in_use(engine.forward(batch)));
    return true;
  };
  must(session.append(kPrompt, {.progress = progress}));
  CHECK(calls == 3);
  CHECK(Snapshot(session) == expected);

  // Between the pieces of a generation it can be copied, but not changed.
  std::vector<Session> forks;
  Sampler sampler = greedy();
  const auto summary = must(session.generate(sampler, {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore}, [&](const Piece& piece) {
    if (piece.finish == FinishReason::none) CHECK(refuses_changes(session));
    forks.push_back(must(session.fork()));
    return true;
  }));
  CHECK(summary.figures.tokens == 3);
  must(plain.generate(sampler, {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore}, {}));
  CHECK(Snapshot(session) == Snapshot(plain));
  CHECK(std::ranges::equal(forks[2].tokens(), plain.tokens()));

  // Within a draw, not even that.
  Sampler nosy = sampling::chain().stage([&](sampling::Candidates&, const sampling::Context&) {
    CHECK(refuses_changes(session));
    CHECK(is_in_use(session.clone()));
  }).greedy().build();
  must(session.generate(nosy, {.max_tokens = 2}, {}));
  // And a copy may be watched, but the session that verify() reads not be changed.
  (void)must(session.verify({.progress = [&](std::size_t, std::size_t) {
    CHECK(refuses_changes(session));
    CHECK(session.fork());
    return true;
  }}));
  must(session.append(kPrompt));
}

TEST_CASE("two generations at once: the second is told, the first goes on", "[use]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  must(session.append(kPrompt));
  Session other = must(engine.session());
  Sampler sampler = greedy();
  std::optional<Generation> first(session.generate(sampler, {.max_tokens = 4, .end_of_generation = EndOfGeneration::ignore}));
  must(*first->next());
  Generation second = session.generate(sampler, {.max_tokens = 4});
  CHECK(is_in_use(*second.next()));
  CHECK(!second.next());
  CHECK(second.finish_reason() == FinishReason::error);
  // In a batch it is the one that fails.
  Batch batch;
  must(batch.add(session, kPrompt));
  must(batch.add(other, kPrompt));
  const Outputs outputs = must(engine.forward(batch));
  CHECK(outputs.outcome(0).error().code() == ErrorCode::invalid_state);
  CHECK(outputs.outcome(kPrompt.size()));
  CHECK(same_bits(outputs.row(2 * kPrompt.size() - 1), other.logits()));
  must(*first->next());
  CHECK(session.tokens().size() == kPrompt.size() + 2);
  first.reset();  // left early: the session is free again
  must(session.append({}));
  {
    Generation whole = session.generate(sampler, {.max_tokens = 1});
    must(*whole.next());
    must(session.append({}));  // at its end, too
    CHECK(!whole.next());
  }
  // A generation that outlives its session ends with an error.
  std::optional<Session> brief(must(session.fork()));
  Generation orphan = brief->generate(sampler, {.max_tokens = 9, .end_of_generation = EndOfGeneration::ignore});
  must(*orphan.next());
  brief.reset();
  CHECK(is_in_use(*orphan.next()));
  CHECK(!orphan.next());
}

TEST_CASE("options that make no sense, and samplers that are none, say so before anything is drawn", "[use]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  must(session.append(kPrompt));
  const Snapshot before(session);
  Sampler sampler = greedy();
  const auto bad_end = session.generate(sampler, {.end_of_generation = static_cast<EndOfGeneration>(7)}, {});
  CHECK(bad_end.error().code() == ErrorCode::invalid_argument);
  Sampler invalid = sampling::chain().top_p(-3.0f).build();
  CHECK(session.generate(invalid, {.max_tokens = 1}, {}).error().code() == ErrorCode::invalid_argument);
  const Sampler taken = std::move(sampler);
  CHECK(session.generate(sampler, {.max_tokens = 1}, {}).error().code() == ErrorCode::invalid_state);  // NOLINT: on purpose
  CHECK(Snapshot(session) == before);
}

TEST_CASE("threads that share a session lose nothing: each call is done, or says that it was not", "[use]") {
  const Engine engine = load_golden("llama-long", {.threads = 1});
  Session session = must(engine.session());
  must(session.append(kPrompt));
  std::atomic<std::size_t> done = 0, refused = 0, wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const Token token = 3 + t;
        const auto result = session.append({&token, 1}, {.logits = LogitsOf::none});
        if (result) ++done;
        else if (is_in_use(result)) ++refused;
        else ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(done + refused == 160);
  CHECK(done > 0);
  CHECK(session.position() == kPrompt.size() + done);
  CHECK(must(session.verify()).verdict == Verdict::same);
}

TEST_CASE("const functions may run at the same time, and give what each gives alone", "[use]") {
  const Engine engine = load_golden("llama-gqa", {.threads = 2});
  Session session = must(engine.session());
  must(session.append(kPrompt));
  const Snapshot expected(session);
  std::vector<std::byte> saved;
  const auto into = [](std::vector<std::byte>& bytes) {
    return [&bytes](std::span<const std::byte> piece) -> Status {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return {};
    };
  };
  must(session.save(into(saved)));
  std::atomic<std::size_t> wrong = 0;
  const auto expect = [&](bool good) { wrong += good ? 0 : 1; };
  std::vector<std::thread> threads;
  for (int t = 0; t < 5; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        switch ((t + i) % 5) {
          case 0: {
            auto fork = session.fork();
            expect(fork && Snapshot(*fork) == expected);
            if (fork) expect(fork->append(kPrompt).has_value());  // copies a page, and makes logits of its own
            break;
          }
          case 1: {
            auto clone = session.clone();
            expect(clone && Snapshot(*clone) == expected);
            break;
          }
          case 2: {
            const auto converted = session.convert({.kind = KvKind::contiguous, .page_tokens = 16});
            expect(converted && checksums(*converted) == expected.checksums);
            break;
          }
          case 3: {
            std::vector<std::byte> bytes;
            expect(session.save(into(bytes)) && bytes == saved);
            break;
          }
          default: {
            const auto found = session.verify();
            expect(found && found->verdict == Verdict::same);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(Snapshot(session) == expected);
  must(session.append(kPrompt));
}

}  // namespace test_session_use
