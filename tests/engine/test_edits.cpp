// Tokens removed from the middle of a sequence: what moves up keeps its values, its keys are those of the new
// positions, and what cannot be done is refused with everything as it was.
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include <tessera/extend/kv/records.hpp>

#include "engine/kv_twins.hpp"
#include "kv/codecs.hpp"
#include "kv/held_types.hpp"

namespace test_edits {

using namespace tessera;
using namespace tessera::test;

namespace {

// How far a key that was rotated back may be from one that was computed there. Each rounding is at most u of an element (half a
// unit in the last place), and there are three: of the old key, which the rotation spreads over two elements, of the rotated, and
// of the one compared with. So much of the largest element of that key; what is held in another basis (kv/rotation.hpp) is
// compared by its length, which rotations leave: of INT8 no number is off by more than 1/254 of the largest, which is no more than
// the length, so that the length of what is off is at most sqrt(dim) / 254 of it. INT4 has no such bound that says anything: one
// rounding is off by 0.08 of the length on average (test_kv_codecs), three by 0.14.
double tolerance(DType key, std::size_t dim) {
  switch (key) {
    case DType::f16: return 4.0 / 2048.0;
    case DType::bf16: return 4.0 / 256.0;
    case DType::fp8: return 4.0 / 16.0;
    case DType::int8: return 3.0 * std::sqrt(static_cast<double>(dim)) / 254.0 * 1.01;
    case DType::int4: return 0.3;
    default: return 1e-6;
  }
}

// A golden model of which only the first `dim` elements of a head rotate.
Engine load_partial_rope(const std::string& name, std::uint32_t dim) {
  std::ifstream in(golden_dir() / (name + ".gguf"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string key = "rope.dimension_count";
  const std::size_t at = bytes.find(key);
  REQUIRE(at != std::string::npos);
  std::memcpy(bytes.data() + at + key.size() + 4, &dim, sizeof dim);  // behind the value's type
  const ModelFile file = must(ModelFile::from_memory(std::as_bytes(std::span(bytes))));
  return must(Engine::load(file, {.threads = 1}));
}

std::vector<std::byte> records(const Session& session, const kv::HeadPart& of, std::size_t first, std::size_t last) {
  std::vector<std::byte> out((last - first) * kv::record_bytes(session.kv().layout(), of));
  kv::read_records(session.kv().view(), of, first, last, out.data());
  return out;
}

// The largest difference of two keys, as a part of the largest element; of a type that rotates the length of the difference, as a
// part of the key's.
double key_difference(const Session& a, const Session& b, const kv::HeadPart& of, std::uint64_t position) {
  std::vector<float> left(kv::dim_of(a.kv().layout(), of)), right(left.size());
  kv::decode(a.kv().view(), of, position, left.data());
  kv::decode(b.kv().view(), of, position, right.data());
  double largest = 0.0, difference = 0.0, length = 0.0, off = 0.0;
  for (std::size_t d = 0; d < left.size(); ++d) {
    const double x = right[d], error = static_cast<double>(left[d]) - x;
    largest = std::max(largest, std::abs(x));
    difference = std::max(difference, std::abs(error));
    length += x * x;
    off += error * error;
  }
  return is_held_rotated(held_as(a.kv().dtype(), kv::KeyOrValue::key)) ? std::sqrt(off / length) : difference / largest;
}

template <class Fn>
void for_each_head(const Session& session, Fn&& fn) {
  const KvLayout& layout = session.kv().layout();
  for (std::size_t layer = 0; layer < layout.layers.size(); ++layer) {
    for (std::size_t head = 0; head < layout.layer(layer).shape.kv_heads; ++head) fn(layer, head);
  }
}

// In layer 0 keys and values depend on their token and position alone: there a session of which [first, last) was
// removed is like a fresh one of the other tokens.
void check_removal(const Engine& engine, const KvOptions& kv, std::size_t n, std::size_t first, std::size_t last) {
  INFO(to_string(kv.dtype) << (kv.kind == KvKind::paged ? ", paged, " : ", contiguous, ") << n << " tokens without "
                           << first << " to " << last);
  auto tokens = make_tokens(n, n, engine.spec().vocab_size);
  Session session = must(engine.session({.kv = kv}));
  must(session.append(tokens));
  const Session before = must(session.clone());
  must(session.remove(first, last));
  tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.begin() + static_cast<std::ptrdiff_t>(last));
  REQUIRE(std::ranges::equal(session.tokens(), tokens));
  CHECK(session.edited());
  CHECK(same_bits(session.logits(), before.logits()));
  Session fresh = must(engine.session({.kv = kv}));
  must(fresh.append(tokens));

  const std::size_t left = tokens.size(), moved = last - first;
  double worst = 0.0;
  for_each_head(session, [&](std::size_t layer, std::size_t head) {
    const kv::HeadPart keys{.layer = layer, .part = kv::KeyOrValue::key, .head = head};
    const kv::HeadPart values{.layer = layer, .part = kv::KeyOrValue::value, .head = head};
    CHECK(records(session, keys, 0, first) == records(before, keys, 0, first));
    CHECK(records(session, values, 0, first) == records(before, values, 0, first));
    CHECK(records(session, values, first, left) == records(before, values, first + moved, left + moved));
    if (layer > 0) return;
    CHECK(records(session, values, 0, left) == records(fresh, values, 0, left));
    CHECK(records(session, keys, 0, first) == records(fresh, keys, 0, first));
    for (std::size_t p = first; p < left; ++p) worst = std::max(worst, key_difference(session, fresh, keys, p));
  });
  CHECK(worst < tolerance(held_as(kv.dtype, kv::KeyOrValue::key), engine.spec().layers[0].key_dim));
  if (std::getenv("TESSERA_TEST_FIGURES") != nullptr) {
    WARN(engine.spec().name << " " << to_string(kv.dtype) << " " << worst);
  }
  // Above, values still know of what went.
  const std::size_t top = engine.spec().n_layers() - 1;
  CHECK(session.kv().checksum(top) != fresh.kv().checksum(top));
}

void check_removals(const Engine& engine) {
  for (const DType dtype : kKvTypes) {
    for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
      for (const std::uint32_t page_tokens : {16u, 32u}) {
        const KvOptions kv{.dtype = dtype, .kind = kind, .page_tokens = page_tokens};
        check_removal(engine, kv, 60, 5, 6);
        check_removal(engine, kv, 60, 0, 16);
        check_removal(engine, kv, 61, 16, 48);
        check_removal(engine, kv, 64, 3, 62);
        check_removal(engine, kv, 33, 31, 32);
      }
    }
  }
}

// A refusal: which one, and that nothing has changed.
template <class Result>
void check_refused(const Session& session, const Snapshot& before, const Result& result, ErrorCode code) {
  REQUIRE(!result);
  CHECK(result.error().code() == code);
  CHECK(Snapshot(session) == before);
}

}  // namespace

TEST_CASE("after a removal keys are those of their new positions: pairs next to each other", "[edits]") {
  for (const char* name : {"llama-gqa", "llama-head-dim", "llama-linear", "llama3"}) {
    DYNAMIC_SECTION(name) {
      const Engine engine = load_golden(name);
      REQUIRE(engine.spec().ropes.at(0).pairs == RopePairs::interleaved);
      check_removals(engine);
    }
  }
}

TEST_CASE("after a removal keys are those of their new positions: pairs half a head apart", "[edits]") {
  for (const char* name : {"qwen2", "qwen3", "falcon-7b", "falcon-7b-theta"}) {
    DYNAMIC_SECTION(name) {
      const Engine engine = load_golden(name);
      REQUIRE(engine.spec().ropes.at(0).pairs == RopePairs::halves);
      check_removals(engine);
    }
  }
}

TEST_CASE("after a removal keys are those of their new positions: a part of the head", "[edits]") {
  for (const std::uint32_t dim : {2u, 8u}) {
    const Engine engine = load_partial_rope("llama-head-dim", dim);
    REQUIRE(engine.spec().ropes.at(0).dim == dim);
    REQUIRE(engine.spec().layers[0].key_dim == 12);
    check_removals(engine);
    // What does not rotate keeps its bits in F32.
    Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
    must(session.append(make_tokens(1, 60, engine.spec().vocab_size)));
    const Session before = must(session.clone());
    must(session.remove(10, 20));
    const kv::HeadPart keys{.layer = 1, .part = kv::KeyOrValue::key, .head = 1};
    float old_key[12], new_key[12];
    for (std::size_t p = 10; p < 50; ++p) {
      kv::decode(before.kv().view(), keys, p + 10, old_key);
      kv::decode(session.kv().view(), keys, p, new_key);
      CHECK(std::memcmp(old_key + dim, new_key + dim, (12 - dim) * sizeof(float)) == 0);
      CHECK(std::memcmp(old_key, new_key, dim * sizeof(float)) != 0);
    }
  }
}

TEST_CASE("some keys cannot be moved, but the end can go", "[edits]") {
  const auto [model, why] = GENERATE(std::pair("gpt2", "learned positions"), std::pair("hunyuan-dense", "behind their rotation"));
  const Engine engine = load_golden(model);
  Session session = must(engine.session());
  const auto tokens = make_tokens(1, 40, engine.spec().vocab_size);
  must(session.append(tokens));
  const Snapshot before(session);
  const Status refused = session.remove(3, 5);
  check_refused(session, before, refused, ErrorCode::unsupported);
  CHECK(refused.error().message().find(why) != std::string::npos);
  check_refused(session, before, session.keep_window(2, 10), ErrorCode::unsupported);
  must(session.keep_window(2, 100));  // nothing to remove
  CHECK(Snapshot(session) == before);
  must(session.remove(30, 40));
  CHECK(!session.edited());
  CHECK(session.position() == 30);
  must(session.append(std::span(tokens).subspan(30)));
  CHECK(Snapshot(session) == before);
}

TEST_CASE("ranges that are none are refused, and empty ones change nothing", "[edits]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session());
  must(session.remove(0, 0));
  must(session.keep_window(0, 0));
  CHECK(session.remove(0, 1).error().code() == ErrorCode::invalid_argument);
  must(session.append(make_tokens(1, 40, engine.spec().vocab_size)));
  const Snapshot before(session);
  constexpr std::size_t kMost = ~std::size_t{0};
  check_refused(session, before, session.remove(5, 4), ErrorCode::invalid_argument);
  check_refused(session, before, session.remove(5, 41), ErrorCode::invalid_argument);
  check_refused(session, before, session.remove(41, 41), ErrorCode::invalid_argument);
  check_refused(session, before, session.remove(0, kMost), ErrorCode::invalid_argument);
  check_refused(session, before, session.remove(kMost, kMost), ErrorCode::invalid_argument);
  check_refused(session, before, session.keep_window(4, 0), ErrorCode::invalid_argument);
  for (const std::size_t at : {0u, 7u, 40u}) must(session.remove(at, at));
  must(session.keep_window(0, 40));
  must(session.keep_window(40, 0));
  must(session.keep_window(kMost, kMost));
  must(session.keep_window(1, kMost));
  CHECK(Snapshot(session) == before);
  Session gone = std::move(session);
  CHECK(session.remove(0, 1).error().code() == ErrorCode::invalid_state);  // NOLINT: on purpose
  CHECK(session.keep_window(1, 1).error().code() == ErrorCode::invalid_state);
}

TEST_CASE("removing the end is truncating", "[edits]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = make_tokens(1, 40, engine.spec().vocab_size);
  Session session = must(engine.session()), other = must(engine.session());
  must(session.append(tokens));
  must(other.append(tokens));
  must(session.remove(25, 40));
  must(other.truncate(25));
  CHECK(!session.edited());
  CHECK(Snapshot(session) == Snapshot(other));
  CHECK(session.logits().empty());
  must(session.append(std::span(tokens).subspan(25)));
  CHECK(same_bits(session.logits(), lone_logits(engine, DType::f32, tokens)));
  must(session.remove(0, 40));
  CHECK(session.position() == 0);
  CHECK(session.tokens().empty());
}

TEST_CASE("a pending token outlives an edit", "[edits]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = make_tokens(1, 30, engine.spec().vocab_size);
  const std::pair<std::size_t, std::size_t> removals[] = {{5, 9}, {20, 32}, {0, 32}};  // 32: all that is computed
  for (const auto& [first, last] : removals) {
    INFO(first << " to " << last);
    Session session = must(engine.session());
    must(session.append(tokens));
    Sampler greedy = sampling::chain().greedy().build();
    must(session.generate(greedy, {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore}, {}));
    REQUIRE(session.position() == 32);
    std::vector<Token> all(session.tokens().begin(), session.tokens().end());
    CHECK(session.remove(first, 33).error().code() == ErrorCode::invalid_argument);  // it cannot be removed itself
    must(session.remove(first, last));
    CHECK(session.has_pending());
    CHECK(session.edited() == (last < 32));
    const std::vector<Edit> edits = {{.appended = {all.begin(), all.end() - 1}, .first = first, .last = last}};
    Session twin = replay(engine, DType::f32, edits, std::span(all).last(1));
    must(session.append({}));
    CHECK(!session.has_pending());
    CHECK(std::ranges::equal(session.tokens(), twin.tokens()));
    CHECK(same_bits(session.logits(), twin.logits()));
    CHECK(checksums(session) == checksums(twin));
  }
}

TEST_CASE("keep_window removes what is between the first and the last", "[edits]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = make_tokens(1, 50, engine.spec().vocab_size);
  Session session = must(engine.session()), other = must(engine.session());
  must(session.append(tokens));
  must(other.append(tokens));
  must(session.keep_window(4, 20));
  must(other.remove(4, 30));
  CHECK(session.tokens().size() == 24);
  CHECK(session.tokens()[4] == tokens[30]);
  CHECK(Snapshot(session) == Snapshot(other));
  // Pages that became empty went back.
  CHECK(session.kv().bytes() == session.kv().layout().page_bytes());
  // After the edit it goes on, is cut again, and is still the twin of the same edits.
  must(session.append(std::span(tokens).first(30)));
  must(session.keep_window(0, 10));
  must(session.append(std::span(tokens).first(2)));
  const std::vector<Edit> edits = {{.appended = tokens, .first = 4, .last = 30},
                                   {.appended = {tokens.begin(), tokens.begin() + 30}, .first = 0, .last = 44}};
  Session twin = replay(engine, DType::f32, edits, std::span(tokens).first(2));
  CHECK(same_bits(session.logits(), twin.logits()));
  CHECK(checksums(session) == checksums(twin));
}

TEST_CASE("a session whose pending token alone is left can be saved, restored and continued", "[edits]") {
  const Engine engine = load_golden("llama-long");
  Session session = must(engine.session());
  must(session.append(make_tokens(1, 40, engine.spec().vocab_size)));
  Sampler sampler = sampling::chain().greedy().build();
  must(session.generate(sampler, {.max_tokens = 3, .end_of_generation = EndOfGeneration::ignore}, {}));
  REQUIRE(session.has_pending());
  must(session.remove(0, session.position()));
  REQUIRE(session.tokens().size() == 1);
  std::vector<std::byte> saved;
  must(session.save([&](std::span<const std::byte> bytes) {
    saved.insert(saved.end(), bytes.begin(), bytes.end());
    return Status();
  }));
  Session restored = must(engine.restore(saved));
  const auto next = make_tokens(2, 5, engine.spec().vocab_size);
  must(session.append(next));
  must(restored.append(next));
  CHECK(same_bits(session.logits(), restored.logits()));
}

}  // namespace test_edits
