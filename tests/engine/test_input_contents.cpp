// Embeddings in place of tokens: a sequence knows their content, by which pages are shared, sessions are saved and checked.
#include <cmath>
#include <cstdlib>
#include <random>
#include <stdexcept>

#include "engine/kv_rig.hpp"
#include "engine/inside.hpp"
#include "engine/session/edit.hpp"
#include "engine/snapshot_bytes.hpp"

namespace test_input_contents {

using namespace tessera;
using namespace tessera::test;

namespace {

// An input of a sequence: a token, or the number of an embedding in a Table.
struct Input {
  Token token = 0;
  int embedding = -1;
  bool operator==(const Input&) const = default;
};
using Inputs = std::vector<Input>;

// Embeddings. Each one differs from the one before it in a single bit.
struct Table {
  Table(std::size_t rows, std::size_t d_model) : width(d_model), values(rows * d_model, 0.25f) {
    for (std::size_t i = 1; i < rows; ++i) {
      for (std::size_t d = 0; d < i; ++d) values[i * width + d] = std::nextafter(0.25f, 1.0f);
    }
  }
  [[nodiscard]] std::span<const float> row(int i) const { return std::span(values).subspan(static_cast<std::size_t>(i) * width, width); }

  std::size_t width;
  std::vector<float> values;
};

Status append(const Engine& engine, Session& session, std::span<const Input> inputs, const Table& table) {
  Batch batch;
  for (const Input& input : inputs) {
    Row row{.token = input.token};
    if (input.embedding >= 0) row.embedding = table.row(input.embedding);
    if (&input == &inputs.back()) row.want = Want::logits;
    must(batch.add(session, row));
  }
  const auto outputs = engine.forward(batch);
  return outputs ? outputs->status() : Status(outputs.error());
}

Session given(const Engine& engine, std::span<const Input> inputs, const Table& table, KvOptions kv = {}) {
  Session session = must(engine.session({.kv = std::move(kv)}));
  must(append(engine, session, inputs, table));
  return session;
}

std::vector<Hash128> contents_of(std::span<const Input> inputs, const Table& table) {
  std::vector<Hash128> contents;
  for (const Input& input : inputs) {
    if (input.embedding >= 0) contents.push_back(content_hash(table.row(input.embedding)));
  }
  return contents;
}

// Returns whether the session has these inputs.
bool has(const Session& session, std::span<const Input> inputs, const Table& table) {
  const auto token_of = [](const Input& input) { return input.embedding >= 0 ? Token{-1} : input.token; };
  return std::ranges::equal(session.tokens(), inputs, {}, {}, token_of) && std::ranges::equal(session.contents(), contents_of(inputs, table));
}

Inputs inputs_of(std::span<const Token> tokens) {
  Inputs inputs;
  for (const Token token : tokens) inputs.push_back({.token = token});
  return inputs;
}

std::size_t same_beginning(std::span<const Input> a, std::span<const Input> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

TEST_CASE("a content names an embedding's bits and width", "[contents]") {
  const std::vector<float> zeros(8, 0.0f);
  std::vector<float> other = zeros;
  CHECK(content_hash(zeros) == content_hash(other));
  other[7] = -0.0f;
  CHECK(content_hash(zeros) != content_hash(other));
  CHECK(content_hash(zeros) != content_hash(std::span(zeros).first(7)));
}

TEST_CASE("pages of a sequence with an embedding are found by its content, and by no other", "[contents]") {
  const KvRig rig;
  const Table table(2, rig.engine.spec().d_model);
  for (const std::size_t at : {0u, 10u, 31u, 32u, 40u, 99u}) {
    Inputs inputs = inputs_of(make_tokens(100 + at, 200, 96));
    inputs[at] = {.embedding = 0};
    const Session session = given(rig.engine, inputs, table);
    CHECK(session.reused() == 0);
    const Session alone = given(rig.engine, inputs, table, {.kind = KvKind::contiguous});
    const Session again = given(rig.engine, inputs, table);
    CHECK(again.reused() == 192);
    CHECK(has(again, inputs, table));
    CHECK(checksums(again) == checksums(alone));
    CHECK(same_bits(again.logits(), alone.logits()));
    // One bit of the embedding differs; then there is a token in its place.
    for (const Input& instead : {Input{.embedding = 1}, Input{.token = 7}}) {
      Inputs changed = inputs;
      changed[at] = instead;
      const Session other = given(rig.engine, changed, table);
      CHECK(other.reused() == at / 32 * 32);
      CHECK(checksums(other) == checksums(given(rig.engine, changed, table, {.kind = KvKind::contiguous})));
      CHECK(checksums(other) != checksums(session));
    }
  }
}

TEST_CASE("sessions of one batch that begin with the same embeddings compute them once", "[contents]") {
  const KvRig rig;
  const Table table(2, rig.engine.spec().d_model);
  for (const int second : {0, 1}) {
    Session one = rig.session(), other = rig.session();
    Batch batch;
    for (Session* session : {&one, &other}) {
      for (std::size_t i = 0; i < 70; ++i) {
        Row row{.token = Token(40 + second), .want = i == 69 ? Want::logits : Want::nothing};
        if (i == 5) row.embedding = table.row(session == &one ? 0 : second);
        must(batch.add(*session, row));
      }
    }
    must(must(rig.engine.forward(batch)).status());
    CHECK(one.reused() == 0);
    CHECK(other.reused() == (second == 0 ? 64u : 0u));
    CHECK(same_bits(one.logits(), other.logits()) == (second == 0));
  }
}

TEST_CASE("a sequence without embeddings has no contents, and takes no memory for them", "[contents]") {
  const KvRig rig;
  const Session session = rig.given(rig.prompt(100));
  CHECK(session.contents().data() == nullptr);
}

TEST_CASE("verify() computes a session with embeddings from rows that have their contents", "[contents]") {
  const KvRig rig;
  const Table table(4, rig.engine.spec().d_model);
  Inputs inputs = inputs_of(rig.prompt(60));
  for (const std::size_t at : {3u, 20u, 21u, 59u}) inputs[at] = {.embedding = static_cast<int>(at % 3)};
  Session session = given(rig.engine, inputs, table);
  const auto check = [&](std::span<const float> rows, Verdict verdict) {
    const Verification found = must(session.verify({.embeddings = rows}));
    INFO(found.what);
    CHECK(found.verdict == verdict);
  };
  const std::span<const float> all = table.values;
  check(all, Verdict::same);
  check({}, Verdict::unverifiable);
  check(all.first(2 * table.width), Verdict::unverifiable);
  check(all.subspan(table.width), Verdict::unverifiable);
  const auto uneven = session.verify({.embeddings = all.first(table.width + 1)});
  REQUIRE(!uneven);
  CHECK(uneven.error().code() == ErrorCode::invalid_argument);
  // Edits that take embeddings out can be replayed too, and saved.
  must(session.remove(2, 21));
  must(session.append(rig.part(100, 5)));
  must(append(rig.engine, session, Inputs{{.embedding = 1}}, table));
  check(all, Verdict::same);
  check(all.subspan(table.width), Verdict::unverifiable);
  session = must(rig.engine.restore(saved(session)));
  check(all, Verdict::same);
}

TEST_CASE("pages of a session are given up to be computed again only while it has no embedding", "[contents]") {
  const KvRig rig;
  const Table table(1, rig.engine.spec().d_model);
  Session session = rig.given(rig.prompt(40));
  CHECK(detail::can_give_pages_up(*state_of(session)));
  must(append(rig.engine, session, Inputs{{.embedding = 0}, {.token = 3}}, table));
  CHECK(!detail::can_give_pages_up(*state_of(session)));
  must(session.truncate(40));
  CHECK(detail::can_give_pages_up(*state_of(session)));
}

TEST_CASE("a restored session with embeddings shares its pages", "[contents]") {
  const KvRig rig, other;
  const Table table(2, rig.engine.spec().d_model);
  Inputs inputs = inputs_of(rig.prompt(100));
  inputs[40] = {.embedding = 0};
  const Session restored = must(other.engine.restore(saved(given(rig.engine, inputs, table))));
  CHECK(has(restored, inputs, table));
  CHECK(given(other.engine, inputs, table).reused() == 96);
  inputs[40] = {.embedding = 1};
  CHECK(given(other.engine, inputs, table).reused() == 32);
}

TEST_CASE("a session that can ask for its embeddings computes them again to the same bits", "[contents]") {
  // Truncation makes tokens pending: recurrent layers go back to a checkpoint, and a window has given keys back.
  for (const char* model : {"llama-long", "qwen35", "gemma3"}) {
    INFO(model);
    const Engine engine = load_golden(model);
    const std::uint32_t context = engine.plan().context;
    const Table table(3, engine.spec().d_model);
    std::size_t asked = 0;
    const SessionOptions options{.embedding_of = [&](const Hash128& content) -> std::span<const float> {
      ++asked;
      for (int i = 0; i < 3; ++i) {
        if (content_hash(table.row(i)) == content) return table.row(i);
      }
      return {};
    }};
    Inputs inputs = inputs_of(make_tokens(5, std::min<std::uint32_t>(context - 4, 90), engine.spec().vocab_size));
    for (std::size_t at = 1; at < inputs.size(); at += 7) inputs[at] = {.embedding = static_cast<int>(at % 3)};
    Session session = must(engine.session(options));
    must(append(engine, session, inputs, table));
    CHECK(asked == 0);
    CHECK(detail::can_give_pages_up(*state_of(session)));
    CHECK(must(session.verify()).verdict == Verdict::same);
    for (const std::size_t to : {inputs.size() - 3, inputs.size() / 2, std::size_t{9}, std::size_t{2}}) {
      INFO("truncated to " << to);
      must(session.truncate(to));
      REQUIRE(has(session, std::span(inputs).first(to), table));
      // A copy, and a session that is saved with pending embeddings.
      Session copy = must(session.fork());
      Session restored = must(engine.restore(saved(session), options));
      const Session alone = given(engine, std::span(inputs).first(to), table, {.kind = KvKind::contiguous});
      for (Session* one : {&session, &copy, &restored}) {
        CHECK(same_bits(must(one->append({})).values, alone.logits()));
        CHECK(checksums(*one) == checksums(alone));
      }
    }
    CHECK(asked > 0);
  }
}

TEST_CASE("an embedding that is not found leaves its session as it was", "[contents]") {
  const Engine engine = load_golden("qwen35");
  const Table table(2, engine.spec().d_model);
  Inputs inputs = inputs_of(make_tokens(5, 20, engine.spec().vocab_size));
  inputs[3] = {.embedding = 0};
  enum class Answer { nothing, other, narrow, exception, right } answer = Answer::right;
  Session session = must(engine.session({.embedding_of = [&](const Hash128&) -> std::span<const float> {
    switch (answer) {
      case Answer::nothing: return {};
      case Answer::other: return table.row(1);
      case Answer::narrow: return table.row(0).first(3);
      case Answer::exception: throw std::runtime_error("gone");
      case Answer::right: break;
    }
    return table.row(0);
  }}));
  must(append(engine, session, inputs, table));
  must(session.truncate(10));
  inputs.resize(10);
  for (const Answer one : {Answer::nothing, Answer::other, Answer::narrow, Answer::exception}) {
    answer = one;
    const auto failed = session.append({});
    REQUIRE(!failed);
    CHECK(failed.error().code() == ErrorCode::invalid_state);
    CHECK_THAT(std::string(failed.error().message()), Catch::Contains("position 3 has an embedding"));
    CHECK(has(session, inputs, table));
  }
  Session restored = must(engine.restore(saved(session)));  // without such a function
  CHECK(has(restored, inputs, table));
  CHECK(restored.append({}).error().code() == ErrorCode::invalid_state);
  must(restored.truncate(3));
  must(restored.append(std::vector<Token>{1}));
  answer = Answer::right;
  // A pending embedding as the row of a batch, and behind tokens that are removed.
  Session copy = must(session.fork());
  must(copy.truncate(4));
  Batch batch;
  must(batch.add(copy, std::span<const Token>(), Want::logits));
  must(must(engine.forward(batch)).status());
  CHECK(same_bits(copy.logits(), given(engine, std::span(inputs).first(4), table).logits()));
  CHECK(same_bits(must(session.append({})).values, given(engine, inputs, table).logits()));
  // A function that has forgotten an embedding is as none: what would have to be computed again is not thrown away.
  answer = Answer::nothing;
  CHECK(!detail::can_give_pages_up(*state_of(session)));
  must(session.truncate(10));
  CHECK(has(session, inputs, table));
}

TEST_CASE("pending embeddings stay with their session when the computed tokens before them are removed", "[contents]") {
  const Engine engine = load_golden("qwen35");
  const Table table(2, engine.spec().d_model);
  Inputs inputs = inputs_of(make_tokens(5, 60, engine.spec().vocab_size));
  for (const std::size_t at : {3u, 40u, 45u}) inputs[at] = {.embedding = static_cast<int>(at % 2)};
  Session session = must(engine.session({.embedding_of = [&](const Hash128& content) {
    return content_hash(table.row(0)) == content ? table.row(0) : table.row(1);
  }}));
  must(append(engine, session, inputs, table));
  must(session.truncate(50));
  const std::size_t computed = session.kv().length();
  REQUIRE(computed < 40);
  must(session.remove(computed - 2, computed));
  inputs.resize(50);
  inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(computed) - 2, inputs.begin() + static_cast<std::ptrdiff_t>(computed));
  REQUIRE(has(session, inputs, table));
  CHECK(same_bits(must(session.append({})).values, given(engine, inputs, table).logits()));
}

// Sessions of few beginnings, in random order forked, cut, edited, saved, converted and appended to. The inputs of each one are kept beside
// it, so its contents, bits and reused pages are known.
TEST_CASE("contents stay right in random rounds", "[contents]") {
  const char* const rounds = std::getenv("TESSERA_TEST_CONTENTS");
  const int n_rounds = rounds != nullptr ? std::atoi(rounds) : 20;
  std::size_t reused = 0;
  for (int round = 0; round < n_rounds; ++round) {
    INFO("round " << round);
    std::mt19937 random(static_cast<std::uint32_t>(round));
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    const KvRig rig;
    const Table table(3, rig.engine.spec().d_model);
    struct One {
      Session session;
      Inputs inputs;
    };
    std::vector<One> all;
    std::vector<Inputs> offered, known;  // sequences whose pages are in the index; all sequences that there were
    const auto some = [&](std::size_t n) {
      Inputs inputs;
      for (std::size_t i = 0; i < n; ++i) {
        if (below(8) == 0) inputs.push_back({.embedding = static_cast<int>(below(3))});
        else inputs.push_back({.token = Token(i % 50)});
      }
      return inputs;
    };
    for (int step = 0; step < 40; ++step) {
      INFO("step " << step);
      if (all.size() > 5) all.erase(all.begin());
      if (all.empty() || below(3) == 0) {  // a new session, which begins like a sequence that there was
        Inputs inputs;
        if (!known.empty() && below(4) != 0) {
          inputs = known[below(known.size())];
          inputs.resize(below(inputs.size() + 1));
        }
        const Inputs more = some(1 + below(100));
        inputs.insert(inputs.end(), more.begin(), more.end());
        Session session = given(rig.engine, inputs, table);
        const auto longest = [&](const std::vector<Inputs>& among) {
          std::size_t most = 0;
          for (const Inputs& one : among) most = std::max(most, same_beginning(one, inputs));
          return std::min(most, inputs.size() - 1) / 32 * 32;
        };
        CHECK(session.reused() >= longest(offered));
        CHECK(session.reused() <= longest(known));
        reused += session.reused();
        offered.push_back(inputs);
        known.push_back(inputs);
        all.push_back({std::move(session), std::move(inputs)});
      }
      One& one = all[below(all.size())];
      switch (below(6)) {
        case 0: {
          const Inputs more = some(1 + below(40));
          if (one.inputs.size() + more.size() > 600) break;
          must(append(rig.engine, one.session, more, table));
          one.inputs.insert(one.inputs.end(), more.begin(), more.end());
          if (!one.session.edited()) known.push_back(one.inputs);
          break;
        }
        case 1: all.push_back({must(one.session.fork()), one.inputs}); break;
        case 2: {
          const std::size_t at = below(one.inputs.size()) + 1;
          must(one.session.truncate(at));
          one.inputs.resize(std::min(at, one.inputs.size()));
          break;
        }
        case 3: {
          const std::size_t first = below(one.inputs.size()), last = first + below(one.inputs.size() - first);
          must(one.session.remove(first, last));
          one.inputs.erase(one.inputs.begin() + static_cast<std::ptrdiff_t>(first), one.inputs.begin() + static_cast<std::ptrdiff_t>(last));
          break;
        }
        case 4: one.session = must(rig.engine.restore(saved(one.session))); break;
        default: one.session = must(one.session.convert({.page_tokens = below(2) == 0 ? 32u : 64u})); break;
      }
      for (const One& each : all) CHECK(has(each.session, each.inputs, table));
      const One& checked = all[below(all.size())];
      const Verification found = must(checked.session.verify({.embeddings = table.values}));
      INFO(found.what);
      CHECK(found.verdict == Verdict::same);
    }
  }
  CHECK(reused > 0);
}

}  // namespace test_input_contents
