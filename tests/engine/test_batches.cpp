// Batches of many sessions, good ones and bad ones: each gets what it gets alone, and what fails stays as it was.
#include <random>

#include "engine/drawing_backend.hpp"
#include "engine/kv_rig.hpp"
#include "engine/inside.hpp"

namespace test_batches {

using namespace tessera;
using namespace tessera::test;

namespace {

enum class Fate { good, bad_token, full, cancelled };

// A session, what it puts into a batch, and what is to become of it.
struct Guest {
  Session session;
  std::vector<Token> tokens;
  Fate fate = Fate::good;
  Snapshot before;
  std::size_t last_row = 0;
};

ErrorCode code_of(Fate fate) {
  switch (fate) {
    case Fate::bad_token: return ErrorCode::invalid_argument;
    case Fate::full: return ErrorCode::cache_full;
    case Fate::cancelled: return ErrorCode::cancelled;
    case Fate::good: break;
  }
  return ErrorCode{};
}

Sampler drawing(std::uint64_t seed) { return sampling::chain().temperature(1.1f).top_k(30).seed(seed).build(); }
Sampler penalised(std::uint64_t seed) {
  return sampling::chain().penalties({.repetition = 1.3f}).temperature(1.1f).seed(seed).build();
}

}  // namespace

TEST_CASE("in random batches with failing sessions the good ones have the bits they have alone", "[batches]") {
  const Engine engine = load_golden("llama-long", {.threads = 2, .step_rows = 64});
  const Engine lone = load_golden("llama-long", {.threads = 2});
  const std::uint32_t vocab = engine.spec().vocab_size;
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::stop_source stopped;
  stopped.request_stop();
  std::size_t good = 0, bad = 0;
  for (int round = 0; round < 12; ++round) {
    const std::size_t n = round < 2 ? 64 : 1 + below(64);
    std::vector<Guest> guests;
    for (std::size_t i = 0; i < n; ++i) {
      const KvOptions kv{.kind = below(4) == 0 ? KvKind::contiguous : KvKind::paged, .page_tokens = 16};
      Session session = must(engine.session({.kv = kv, .context = 96}));
      const auto fate = below(3) != 0 ? Fate::good : static_cast<Fate>(1 + below(3));
      auto tokens = make_tokens(static_cast<std::uint32_t>(below(9)), 1 + below(60), vocab);
      if (below(2) == 0) must(session.append(make_tokens(20 + static_cast<std::uint32_t>(i), 1 + below(20), vocab)));
      if (session.tokens().size() > 0 && below(3) == 0) must(session.add_pending(static_cast<Token>(below(vocab))));
      if (fate == Fate::bad_token) tokens[below(tokens.size())] = below(2) == 0 ? static_cast<Token>(vocab) : -3;
      if (fate == Fate::full) tokens = make_tokens(3, 97, vocab);
      Snapshot before(session);
      guests.push_back({std::move(session), std::move(tokens), fate, std::move(before)});
    }
    Batch batch;
    // Rows of sessions one after another, or in turn.
    const bool in_turn = below(2) == 0;
    std::vector<std::size_t> done(n);
    for (std::size_t left = n; left > 0;) {
      for (std::size_t i = 0; i < n; ++i) {
        Guest& guest = guests[i];
        while (done[i] < guest.tokens.size()) {
          const bool last = done[i] + 1 == guest.tokens.size();
          must(batch.add(guest.session, {.token = guest.tokens[done[i]++], .want = last ? Want::logits : Want::nothing}));
          if (last) {
            guest.last_row = batch.size() - 1;
            --left;
          }
          if (in_turn) break;
        }
      }
    }
    for (Guest& guest : guests) {
      if (guest.fate == Fate::cancelled) must(batch.set_stop(guest.session, stopped.get_token()));
    }
    auto result = engine.forward(batch);
    if (std::ranges::none_of(guests, [](const Guest& guest) { return guest.fate == Fate::good; })) {
      CHECK(result.error().code() == code_of(guests[0].fate));
      continue;
    }
    const Outputs outputs = must(std::move(result));
    for (Guest& guest : guests) {
      const Status& outcome = outputs.outcome(guest.last_row);
      if (guest.fate != Fate::good) {
        ++bad;
        REQUIRE(!outcome);
        CHECK(outcome.error().code() == code_of(guest.fate));
        CHECK(outputs.row(guest.last_row).empty());
        CHECK(Snapshot(guest.session) == guest.before);
        continue;
      }
      ++good;
      if (!outcome) FAIL(outcome.error().text());
      std::vector<Token> sequence = guest.before.tokens;
      sequence.insert(sequence.end(), guest.tokens.begin(), guest.tokens.end());
      Session alone = must(lone.session({.kv = {.kind = KvKind::contiguous}, .context = 96}));
      const Logits logits = must(alone.append(sequence));
      CHECK(same_bits(outputs.row(guest.last_row), logits[0]));
      CHECK(same_bits(guest.session.logits(), logits[0]));
      CHECK(checksums(guest.session) == checksums(alone));
      CHECK(std::ranges::equal(guest.session.tokens(), sequence));
    }
  }
  CHECK(good > 100);
  CHECK(bad > 50);
}

TEST_CASE("tokens that a batch draws are those that each session's sampler draws alone", "[batches]") {
  const Engine host = load_golden("llama-gqa", {.threads = 3});
  const Engine drawn = load_golden("llama-gqa", {.threads = 3});
  make_drawing(drawn);
  constexpr std::size_t kSessions = 9;
  for (const Engine* engine : {&host, &drawn}) {
    std::vector<Session> sessions;
    std::vector<Sampler> samplers, twins;
    std::vector<std::vector<Token>> expected(kSessions), got(kSessions);
    for (std::size_t i = 0; i < kSessions; ++i) {
      const auto prompt = make_tokens(static_cast<std::uint32_t>(i), 3 + i, 96);
      for (std::vector<Sampler>* list : {&samplers, &twins}) list->push_back(i % 3 == 0 ? penalised(i) : drawing(i));
      sessions.push_back(must(engine->session()));
      Session alone = must(host.session());
      must(alone.append(prompt));
      for (const auto& piece : alone.generate(twins[i], {.max_tokens = 6, .end_of_generation = EndOfGeneration::ignore})) {
        expected[i].push_back(must(Result<Piece>(piece)).token);
      }
      must(sessions[i].append(std::span(prompt).first(prompt.size() - 1), {.logits = LogitsOf::none}));
      must(sessions[i].add_pending(prompt.back()));
      samplers[i].begin_answer(prompt.size());
    }
    for (std::size_t step = 0; step < 6; ++step) {
      Batch batch;
      for (std::size_t i = 0; i < kSessions; ++i) must(batch.add(sessions[i], {}, samplers[i]));  // their pending tokens
      const Outputs outputs = must(engine->forward(batch));
      must(outputs.status());
      for (std::size_t i = 0; i < kSessions; ++i) {
        got[i].push_back(outputs.token(i));
        must(samplers[i].accept(outputs.token(i)));
        must(sessions[i].add_pending(outputs.token(i)));
      }
    }
    CHECK(got == expected);
  }
  // One sampler for all, and one row whose logits the sampler refuses.
  Sampler shared = drawing(5);
  Sampler failing = sampling::chain().stage([](sampling::Candidates& candidates, const sampling::Context&) { candidates.keep(0); }).build();
  std::vector<Session> sessions;
  Batch batch;
  const auto prompt = make_tokens(4, 8, 96);
  for (std::size_t i = 0; i < 4; ++i) sessions.push_back(must(host.session()));
  for (std::size_t i = 0; i < 4; ++i) must(batch.add(sessions[i], prompt, i == 2 ? failing : shared));
  const Outputs outputs = must(host.forward(batch));
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t row = 8 * i + 7;
    CHECK(outputs.outcome(row).has_value() == (i != 2));
    CHECK(outputs.token(row) == (i == 2 ? -1 : outputs.token(7)));
    CHECK(sessions[i].position() == (i == 2 ? 0 : prompt.size()));
  }
  CHECK(outputs.outcome(23).error().code() == ErrorCode::numeric);
  CHECK(outputs.token(7) >= 0);
}

TEST_CASE("a row that wants a token needs a sampler, and one that stands for a pending token needs that", "[batches]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  const auto refused = [&](const Batch& batch, ErrorCode code) {
    const auto result = engine.forward(batch);
    REQUIRE(!result);
    CHECK(result.error().code() == code);
    CHECK(session.tokens().empty());
  };
  Sampler empty = drawing(1);
  const Sampler taken = std::move(empty);
  Batch without, moved, pending, late, wrong;
  must(without.add(session, {.token = 3, .want = Want::token}));
  refused(without, ErrorCode::invalid_argument);
  const Token tokens[] = {3};
  must(moved.add(session, tokens, empty));  // NOLINT: on purpose
  refused(moved, ErrorCode::invalid_state);
  must(pending.add(session, std::span<const Token>(), Want::logits));
  refused(pending, ErrorCode::invalid_state);
  must(wrong.add(session, {.token = 3, .want = static_cast<Want>(9)}));
  refused(wrong, ErrorCode::invalid_argument);
  must(session.add_pending(3));
  must(late.add(session, tokens));
  must(late.add(session, std::span<const Token>(), Want::logits));
  CHECK(engine.forward(late).error().code() == ErrorCode::invalid_argument);
  CHECK(session.position() == 0);
}

TEST_CASE("equal prompts of one batch are computed once, and have the bits they have alone", "[batches]") {
  const KvRig rig;
  Session alone = lone_session(rig.engine, DType::f32);
  const std::vector<float> expected = [&] {
    const Logits logits = must(alone.append(rig.prompt(150)));
    return std::vector<float>(logits.values.begin(), logits.values.end());
  }();
  std::vector<Session> sessions;
  for (int i = 0; i < 5; ++i) sessions.push_back(rig.session());
  const std::size_t lengths[] = {150, 150, 100, 150, 40};
  Batch batch;
  for (std::size_t i = 0; i < 5; ++i) must(batch.add(sessions[i], rig.prompt(lengths[i])));
  const Outputs outputs = must(rig.engine.forward(batch));
  must(outputs.status());
  CHECK(sessions[0].reused() == 0);
  CHECK(sessions[1].reused() == 128);
  CHECK(sessions[2].reused() == 96);
  CHECK(sessions[3].reused() == 128);
  CHECK(sessions[4].reused() == 32);
  for (std::size_t row : {149u, 299u, 549u}) CHECK(same_bits(outputs.row(row), expected));
  for (const Session& session : sessions) CHECK(as_if_alone(session));
  // If the first cannot have it, the next computes it.
  std::stop_source stopped;
  stopped.request_stop();
  rig.engine.trim();
  Session a = rig.session(), b = rig.session(), c = rig.session();
  batch.clear();
  const auto other = make_tokens(77, 100, 96);
  for (Session* session : {&a, &b, &c}) must(batch.add(*session, other));
  must(batch.set_stop(a, stopped.get_token()));
  const Outputs rest = must(rig.engine.forward(batch));
  CHECK(!rest.outcome(0));
  CHECK(a.position() == 0);
  CHECK(b.reused() == 0);
  CHECK(c.reused() == 96);
  CHECK(as_if_alone(c));
}

TEST_CASE("what a batch needs and what there is can be asked before", "[batches]") {
  const std::uint64_t page = KvRig().page_bytes();
  const KvRig rig({.kv_budget = 8 * page});
  CHECK(rig.engine.kv_room().bytes == 8 * page);
  Session a = rig.session(), b = rig.session(), c = rig.session({.kind = KvKind::contiguous});
  const auto grow = [&](Session& session, std::span<const Token> tokens, std::uint64_t pages) {
    Batch batch;
    must(batch.add(session, tokens));
    const KvNeed need = must(rig.engine.kv_need(batch));
    CHECK(need.pages == pages);
    CHECK(need.bytes == pages * page);
    const std::uint64_t before = rig.engine.kv_room().bytes;
    must(rig.engine.forward(batch));
    CHECK(rig.engine.kv_room().bytes == before - pages * page);
  };
  grow(a, rig.part(0, 40), 2);
  grow(a, rig.part(40, 24), 0);
  grow(a, rig.part(64, 1), 1);
  Session fork = must(a.fork());
  grow(fork, rig.part(1, 1), 1);  // a copy of the page that both have
  grow(fork, rig.part(2, 1), 0);
  must(a.add_pending(4));
  Batch batch;
  must(batch.add(a, {}, Want::logits));
  must(batch.add(b, rig.part(100, 33)));
  must(batch.add(c, rig.part(0, 33)));
  const KvNeed need = must(rig.engine.kv_need(batch));
  CHECK(need.pages == 1 + 2);  // a's last page is taken for shared still: at most, that is
  CHECK(need.contiguous_bytes == 2 * page);
  CHECK(rig.engine.kv_room().bytes == 4 * page);
  must(must(rig.engine.forward(batch)).status());
  CHECK(load_golden("llama-gqa").kv_room().bytes == ~std::uint64_t{0});
  const Engine other = load_golden("llama-gqa");
  CHECK(other.kv_need(batch).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("a session and its forks have memory for logits only once they want some", "[batches]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  const auto has_room = [](Session& of) { return has_room_for_logits(*state_of(of)); };
  CHECK_FALSE(has_room(session));
  must(session.append(make_tokens(1, 5, 96), {.logits = LogitsOf::none}));
  CHECK_FALSE(has_room(session));
  Session bare = must(session.fork());
  CHECK_FALSE(has_room(bare));
  must(session.append({}));
  Session fork = must(session.fork());
  CHECK(fork.logits().data() == session.logits().data());  // the same memory, until one of the two wants its own
  const std::vector<float> before(fork.logits().begin(), fork.logits().end());
  for (int i = 0; i < 3; ++i) must(session.append(make_tokens(2, 1, 96)));
  CHECK(same_bits(fork.logits(), before));
}

}  // namespace test_batches
