// A session saved on one backend goes on on another, marked as what that one would not have computed.

#include <fmt/ranges.h>

#include "engine/hidden_backend.hpp"
#include "engine/load/identity.hpp"
#include "engine/snapshot_bytes.hpp"

namespace test_snapshot_backends {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<Token> tokens_of(const std::string& model) { return read_tokens(golden_dir() / (model + ".tokens.txt")); }

// The fingerprint's strings: model, numerics, spec.
std::vector<std::string> fingerprint(const Bytes& bytes) {
  const SectionAt at = section(bytes, "MODL");
  std::vector<std::string> strings;
  for (std::size_t offset = at.payload; offset < at.payload + at.length;) {
    const auto size = number_at<std::uint32_t>(bytes, offset);
    offset += sizeof size;
    strings.emplace_back(reinterpret_cast<const char*>(bytes.data() + offset), size);
    offset += size;
  }
  REQUIRE(strings.size() == 3);
  return strings;
}

Bytes with_fingerprint(const Bytes& bytes, const std::vector<std::string>& strings) {
  Bytes payload;
  for (const std::string& text : strings) {
    const auto size = static_cast<std::uint32_t>(text.size());
    const auto number = std::as_bytes(std::span(&size, 1)), letters = std::as_bytes(std::span(text));
    payload.insert(payload.end(), number.begin(), number.end());
    payload.insert(payload.end(), letters.begin(), letters.end());
  }
  return with_payload(bytes, section(bytes, "MODL"), payload);
}

Bytes with_numerics(const Bytes& bytes, const std::string& numerics) {
  auto strings = fingerprint(bytes);
  strings[1] = numerics;
  return with_fingerprint(bytes, strings);
}

// Of another backend's, nothing can be computed again, and nobody finds its pages.
void check_marked(const Engine& engine, const Session& session) {
  CHECK(session.edited());
  const Verification found = must(session.verify());
  CHECK(found.verdict == Verdict::unverifiable);
  CHECK_THAT(found.what, Catch::Contains("another backend"));
  engine.trim();  // what others have left
  Session other = must(engine.session());
  must(other.append(session.tokens()));
  CHECK(other.reused() == 0);
}

}  // namespace

TEST_CASE("numerics name their backend, and the CPU's are as they were", "[snapshot]") {
  CHECK(detail::backend_of("cuda: f16-mma reference-f32") == "cuda");
  CHECK(detail::backend_of("reference-f32 vector-f32") == "cpu");
  CHECK(detail::backend_of("a b: c") == "cpu");
  CHECK(detail::backend_of("") == "cpu");
  HiddenMemory memory;
  const Engine host = load_golden("qwen3"), device = load_hidden("qwen3", memory);
  const auto here = fingerprint(saved(must(host.session()))), there = fingerprint(saved(must(device.session())));
  CHECK(here[1].find(':') == std::string::npos);
  CHECK(there[1] == "hidden: " + here[1]);
  CHECK(here[0] == there[0]);
}

TEST_CASE("numerics are those of the session's KV type", "[snapshot]") {
  const Engine engine = load_golden("llama-gqa", {.numerics = Numerics::automatic});
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  must(session.append(tokens_of("llama-gqa")));
  const Bytes bytes = saved(session);
  CHECK(fingerprint(bytes)[1] == "attention f32; linear F32 f32; rest reference-f32");
  const Session restored = must(engine.restore(bytes));
  CHECK_FALSE(restored.edited());
  CHECK(must(restored.verify()).verdict == Verdict::same);
  CHECK(saved(restored) == bytes);
}

TEST_CASE("what another backend computed goes on here, marked, and stays so when it is saved again", "[snapshot]") {
  for (const std::string& model : representative_models()) {
    INFO(model);
    const Engine engine = load_golden(model);
    const auto tokens = tokens_of(model);
    Session session = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
    must(session.append(tokens));
    const Bytes foreign = with_numerics(saved(session), "cuda: f16-mma");
    Session restored = must(engine.restore(foreign));
    CHECK(std::ranges::equal(restored.tokens(), session.tokens()));
    CHECK(same_bits(restored.logits(), session.logits()));
    CHECK(checksums(restored) == checksums(session));
    CHECK(restored.kv().first() == session.kv().first());
    check_marked(engine, restored);

    const Bytes again = saved(restored);
    CHECK(fingerprint(again) == fingerprint(saved(session)));  // it is this engine's now
    Session twice = must(engine.restore(again));
    check_same(restored, twice);
    check_marked(engine, twice);
    CHECK(saved(twice) == again);

    const std::vector<Token> more = {3, 10, 17};
    const auto expected = all_logits(session, more, 1);
    CHECK(same_bits(all_logits(restored, more, 1), expected));
    CHECK(same_bits(all_logits(twice, more, 2), expected));
    must(restored.clear());  // nothing of the other backend's is left
    must(restored.append(tokens));
    CHECK(!restored.edited());
    CHECK(must(restored.verify()).verdict == Verdict::same);
  }
}

TEST_CASE("a session goes from one backend to another and back, from pages of a device too", "[snapshot]") {
  for (const std::string model : {"llama-long", "mistral", "gpt2"}) {
    HiddenMemory memory;
    const Engine host = load_golden(model), device = load_hidden(model, memory);
    const auto tokens = tokens_of(model);
    for (const DType dtype : kFewKvTypes) {
      for (const Engine* from : {&host, &device}) {
        const Engine* to = from == &host ? &device : &host;
        INFO(model << " " << to_string(dtype) << (from == &host ? " to" : " from") << " a device");
        Session session = must(from->session({.kv = {.dtype = dtype, .prefix = PrefixReuse::off}}));
        must(session.append(tokens));
        const Bytes bytes = saved(session);
        Session there = must(to->restore(bytes, place_options(kPlaces[0])));
        check_marked(*to, there);
        CHECK(checksums(there) == checksums(session));
        Session back = must(from->restore(saved(there), place_options(kPlaces[5])));
        CHECK(checksums(back) == checksums(session));
        CHECK(back.edited());
        CHECK(must(back.verify()).verdict == Verdict::unverifiable);
        const std::vector<Token> more = {3, 10, 17};
        const auto expected = all_logits(session, more, 1);  // both compute as the CPU does
        CHECK(same_bits(all_logits(there, more, 2), expected));
        CHECK(same_bits(all_logits(back, more, 2), expected));
        // On its own backend it is as it was.
        Session same = must(from->restore(bytes));
        CHECK(!same.edited());
        CHECK(must(same.verify()).verdict == Verdict::same);
      }
    }
    CHECK(memory.makes_sense());
  }
}

TEST_CASE("what another backend computed goes on behind a window too, and what has left it is computed here", "[snapshot]") {
  HiddenMemory memory;
  const EngineOptions options{.sliding_window = 8};
  const Engine engine = load_golden("mistral", options), device = load_hidden("mistral", memory, options);
  const auto tokens = tokens_of("mistral");
  for (const Engine* to : {&engine, &device}) {
    const Engine* from = to == &engine ? &device : &engine;
    Session session = must(from->session({.kv = {.page_tokens = 16, .prefix = PrefixReuse::off}}));
    must(session.append(tokens));
    REQUIRE(session.kv().first() > 0);
    Session restored = must(to->restore(saved(session), place_options({KvKind::paged, 16})));
    CHECK(restored.kv().first() == session.kv().first());
    CHECK(checksums(restored) == checksums(session));
    CHECK(must(restored.verify()).verdict == Verdict::unverifiable);
    const auto more = std::span(tokens).first(20);
    CHECK(same_bits(all_logits(restored, more, 3), all_logits(session, more, 3)));
    must(restored.truncate(5));
    CHECK(restored.position() == 0);
    must(restored.append(std::span(tokens).subspan(5, 3)));
    CHECK(!restored.edited());
    CHECK(must(restored.verify()).verdict == Verdict::same);
  }
}

TEST_CASE("what nothing was computed of is nobody's, and what was edited elsewhere cannot be replayed", "[snapshot]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = tokens_of("llama-gqa");
  Session empty = must(engine.restore(with_numerics(saved(must(engine.session())), "cuda: f16-mma")));
  CHECK(!empty.edited());
  must(empty.append(tokens));
  CHECK(must(empty.verify()).verdict == Verdict::same);

  Session edited = must(engine.session());
  must(edited.append(tokens));
  must(edited.remove(3, 6));
  CHECK(must(edited.verify()).verdict == Verdict::same);
  Session restored = must(engine.restore(with_numerics(saved(edited), "cuda: f16-mma")));
  check_marked(engine, restored);
  must(restored.remove(1, 2));
  must(restored.append(std::span(tokens).first(4)));
  check_marked(engine, must(engine.restore(saved(restored))));
}

TEST_CASE("other numerics of the same backend, and another model of another one, are errors as ever", "[snapshot]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  must(session.append(tokens_of("llama-gqa")));
  const Bytes bytes = saved(session);
  const auto refused = [&](std::size_t line, const std::string& text, const std::string& numerics) {
    auto strings = fingerprint(bytes);
    if (!numerics.empty()) strings[1] = numerics;
    strings[line] = text;
    const auto restored = engine.restore(with_fingerprint(bytes, strings));
    REQUIRE(!restored);
    CHECK(restored.error().code() == ErrorCode::invalid_argument);
    return restored.error().message();
  };
  CHECK_THAT(refused(1, "reference-f64", ""), Catch::Contains("other numerics"));
  CHECK_THAT(refused(1, "", ""), Catch::Contains("other numerics"));
  CHECK_THAT(refused(0, "llama 00", "cuda: f16-mma"), Catch::Contains("another model"));
  CHECK_THAT(refused(2, "layers.window 7*2", "cuda: f16-mma"), Catch::Contains("other settings of the model"));
}

}  // namespace test_snapshot_backends
