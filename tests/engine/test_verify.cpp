// verify(): what is as it should be is found so, and damage is found where it is.
#include <random>

#include <tessera/extend/kv/records.hpp>

#include "engine/models.hpp"
#include "kv/codecs.hpp"
#include "kv/held_types.hpp"

namespace test_verify {

using namespace tessera;
using namespace tessera::test;

namespace {


void flip_bit(const Session& session, const kv::HeadPart& of, std::uint64_t position, std::size_t bit) {
  std::vector<std::byte> record(kv::record_bytes(session.kv().layout(), of));
  kv::read_records(session.kv().view(), of, position, position + 1, record.data());
  record[bit / 8 % record.size()] ^= static_cast<std::byte>(1u << bit % 8);
  kv::write_records(session.kv().view(), of, position, position + 1, record.data());
}

}  // namespace

TEST_CASE("an undamaged session verifies, of every model, type and layout", "[verify]") {
  for (const std::string& model : representative_models()) {
    const Engine engine = load_golden(model);
    const auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
    for (const DType dtype : kFewKvTypes) {
      if (!holds(engine, dtype)) continue;
      for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
        INFO(model << " " << to_string(dtype));
        Session session = must(engine.session({.kv = {.dtype = dtype, .kind = kind, .page_tokens = 16}}));
        CHECK(must(session.verify()).verdict == Verdict::same);  // nothing is as it should be, too
        must(session.append(tokens));
        const Verification all = must(session.verify());
        CHECK(all.verdict == Verdict::same);
        CHECK(all.compared > 0);
        must(session.truncate(tokens.size() / 2));
        CHECK(must(session.verify()).verdict == Verdict::same);
      }
    }
  }
}

TEST_CASE("one flipped bit is found, with its layer, head and position", "[verify]") {
  std::mt19937 random(7);
  for (const std::string model : {"llama-gqa", "gpt2", "qwen3", "mistral"}) {
    const Engine engine = load_golden(model);
    const auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
    for (const DType dtype : kFewKvTypes) {
      for (int i = 0; i < 20; ++i) {
        Session session = must(engine.session({.kv = {.dtype = dtype, .prefix = PrefixReuse::off}}));
        must(session.append(tokens));
        const KvLayout& layout = session.kv().layout();
        kv::HeadPart of{.layer = random() % layout.layers.size(), .part = static_cast<kv::KeyOrValue>(random() % 2), .head = 0};
        of.head = random() % layout.layer(of.layer).shape.kv_heads;
        const std::uint64_t first = session.kv().first();
        const std::uint64_t position = first + random() % (session.kv().length() - first);
        flip_bit(session, of, position, random());
        const Verification found = must(session.verify());
        INFO(model << " " << to_string(dtype) << ": " << found.what);
        REQUIRE(found.verdict == Verdict::differs);
        CHECK(found.layer == of.layer);
        CHECK(found.head == of.head);
        CHECK(found.position == position);
        CHECK(found.part == of.part);
        CHECK(found.records == 1);
        CHECK(!found.logits_differ);  // they were computed before
      }
    }
  }
}

TEST_CASE("damage that later tokens were computed from is found where it began", "[verify]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  Session session = must(engine.session());
  must(session.append(std::span<const Token>(tokens).first(8)));
  flip_bit(session, {.layer = 0, .part = kv::KeyOrValue::value, .head = 1}, 3, 30);
  must(session.append(std::span<const Token>(tokens).subspan(8)));
  const Verification found = must(session.verify());
  REQUIRE(found.verdict == Verdict::differs);
  CHECK(found.layer == 0);
  CHECK(found.head == 1);
  CHECK(found.position == 3);
  CHECK(found.records > 1);  // the next layer's keys and values are spoiled from position 8 on
  CHECK(found.logits_differ);
}

TEST_CASE("an edited session is compared with a replay of its operations", "[verify]") {
  std::mt19937 random(11);
  const Engine engine = load_golden("llama-long");
  const std::uint32_t vocab = engine.spec().vocab_size;
  for (const DType dtype : kFewKvTypes) {
    Session session = must(engine.session({.kv = {.dtype = dtype}, .context = 200}));
    for (int step = 0; step < 60; ++step) {
      std::vector<Token> tokens(1 + random() % 20);
      for (Token& token : tokens) token = static_cast<Token>(random() % vocab);
      if (session.position() + tokens.size() > session.context()) must(session.keep_window(4, 60));
      must(session.append(tokens));
      if (random() % 4 == 0) must(session.truncate(session.position() - random() % 5));
      const std::size_t first = random() % session.position();
      if (random() % 4 == 0) must(session.remove(first, first + random() % (session.position() - first)));
    }
    REQUIRE(session.edited());
    const Verification found = must(session.verify());
    INFO(found.what);
    CHECK(found.verdict == Verdict::same);
    Session fork = must(session.fork());
    CHECK(must(fork.verify()).verdict == Verdict::same);
    flip_bit(session, {.layer = 1, .part = kv::KeyOrValue::key, .head = 0}, 2, 5);
    CHECK(must(session.verify()).verdict == Verdict::differs);
  }
}

TEST_CASE("a stream of a model with a sliding window verifies", "[verify]") {
  const Engine engine = load_golden("mistral-long");
  std::mt19937 random(3);
  Session session = must(engine.session({.context = 256, .stream = {.sinks = 4, .window = 100}}));
  for (int i = 0; i < 30; ++i) {
    std::vector<Token> tokens(17);
    for (Token& token : tokens) token = static_cast<Token>(random() % engine.spec().vocab_size);
    const std::size_t room = session.context() - session.position();
    must(session.append(std::span<const Token>(tokens).first(std::min(room, tokens.size()))));
  }
  REQUIRE(session.edited());
  const Verification found = must(session.verify());
  INFO(found.what);
  CHECK(found.verdict == Verdict::same);
}

TEST_CASE("what cannot be computed again is unverifiable, and says why", "[verify]") {
  const Engine engine = load_golden("llama-gqa", {.kv = {.dtype = DType::f32}});
  const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  const auto says_why = [](const Session& session, const char* why) {
    const Verification found = must(session.verify());
    INFO(found.what);
    CHECK(found.verdict == Verdict::unverifiable);
    CHECK(found.what.find(why) != std::string::npos);
  };
  Session converted = must(engine.session());
  must(converted.append(tokens));
  converted = must(converted.convert({.dtype = DType::int8}));
  says_why(converted, "converted");
  Session same_type = must(engine.session());
  must(same_type.append(tokens));
  CHECK(must(must(same_type.convert({.kind = KvKind::contiguous, .page_tokens = 64})).verify()).verdict == Verdict::same);

  Session embedded = must(engine.session());
  const std::vector<float> embedding(engine.spec().d_model, 0.5f);
  Batch batch;
  must(batch.add(embedded, {.embedding = embedding, .want = Want::logits}));
  must(engine.forward(batch));
  says_why(embedded, "embeddings");

  Session partial = must(engine.session());
  Batch half;
  must(half.add(partial, std::span<const Token>(tokens), Want::nothing));
  must(engine.forward(half, {.first_layer = 0, .last_layer = 1}));
  says_why(partial, "layers 0 to 1");
}

TEST_CASE("a verification can be stopped, and changes nothing", "[verify]") {
  const Engine engine = load_golden("llama-gqa", {.step_rows = 4});
  const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  Session session = must(engine.session());
  must(session.append(tokens));
  const std::uint64_t before = session.kv().checksum(0);
  const auto stopped = session.verify({.progress = [](std::size_t, std::size_t) { return false; }});
  REQUIRE(!stopped);
  CHECK(stopped.error().code() == ErrorCode::cancelled);
  std::stop_source source;
  source.request_stop();
  CHECK(session.verify({.stop = source.get_token()}).error().code() == ErrorCode::cancelled);
  CHECK(session.kv().checksum(0) == before);
  CHECK(must(session.verify()).verdict == Verdict::same);
}

}  // namespace test_verify
