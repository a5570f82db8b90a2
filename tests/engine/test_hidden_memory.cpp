// Sessions whose keys and values are in memory that the processor cannot address: the same bits as in the host's, in
// everything that a session can do, and a device that fails leaves it as it was.
#include "engine/hidden_backend.hpp"
#include "engine/kv_file.hpp"
#include "engine/snapshot_bytes.hpp"
#include "model/model.hpp"

namespace test_hidden_memory {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<Token> tokens_of(const std::string& model) { return read_tokens(golden_dir() / (model + ".tokens.txt")); }

void check_equal(const Session& a, const Session& b) {
  check_same(a, b);
  CHECK(!b.kv().memory().addressable());
}

// As saved, but for the fingerprint, which names the backend, and the seal.
std::vector<Bytes> contents(const Session& session) {
  const Bytes bytes = saved(session);
  std::vector<Bytes> parts;
  for (const SectionAt& at : sections_of(bytes)) {
    if (at.type == "MODL" || at.type == "SEAL") continue;
    const auto payload = std::span<const std::byte>(bytes).subspan(at.payload, at.length);
    parts.emplace_back(payload.begin(), payload.end());
  }
  return parts;
}

}  // namespace

TEST_CASE("every model, type and layout computes the same bits with pages of a device", "[hidden]") {
  for (const std::string& model : representative_models()) {
    HiddenMemory memory;
    const Engine host = load_golden(model), device = load_hidden(model, memory);
    if (must(host.session()).kv().layout().has_state()) continue;  // HiddenBackend reveals no states; tests/cuda/backend has such models
    const auto tokens = tokens_of(model);
    for (const DType dtype : kFewKvTypes) {
      if (!holds(host, dtype)) continue;
      for (const Place& place : kPlaces) {
        INFO(model << " " << to_string(dtype));
        Session one = must(host.session(place_options(place, dtype)));
        Session other = must(device.session(place_options(place, dtype)));
        const auto half = tokens.size() / 2;
        must(one.append(std::span(tokens).first(half)));
        must(other.append(std::span(tokens).first(half)));
        check_equal(one, other);
        CHECK(must(other.verify()).verdict == Verdict::same);
        Session a = must(one.clone()), b = must(other.clone());
        must(one.append(std::span(tokens).subspan(half)));
        must(other.append(std::span(tokens).subspan(half)));
        check_equal(one, other);
        check_equal(a, b);
        CHECK(contents(one) == contents(other));
        a = must(a.convert({.dtype = DType::f16, .kind = KvKind::paged, .page_tokens = 16}));
        b = must(b.convert({.dtype = DType::f16, .kind = KvKind::paged, .page_tokens = 16}));
        check_equal(a, b);
        if (one.kv().first() == 0 && host.spec().positions == Positions::rope && !detail::norms_rotated_keys(host.spec())) {
          must(one.remove(2, 5));
          must(other.remove(2, 5));
          check_equal(one, other);
          CHECK(must(other.verify()).verdict == Verdict::same);
        }
        must(one.truncate(4));
        must(other.truncate(4));
        must(one.append(std::span(tokens).first(3)));
        must(other.append(std::span(tokens).first(3)));
        check_equal(one, other);
      }
    }
    CHECK(memory.makes_sense());
  }
}

TEST_CASE("pages of a device are shared, found again, suspended and brought back", "[hidden]") {
  HiddenMemory memory;
  const Engine host = load_golden("llama-long");
  const Engine device = load_hidden("llama-long", memory, with_file("hidden", 8 << 20));
  const auto tokens = tokens_of("llama-long");
  Session expected = must(host.session());
  must(expected.append(tokens));
  Session first = must(device.session());
  must(first.append(std::span(tokens).first(100)));
  Session second = must(first.fork());
  must(second.append(std::span(tokens).subspan(100)));
  must(first.append(std::span(tokens).subspan(100)));
  check_equal(expected, first);
  check_equal(expected, second);
  CHECK(device.kv_figures().copies > 0);
  Session third = must(device.session());
  must(third.append(tokens));
  CHECK(third.reused() >= 96);
  check_equal(expected, third);
  must(third.suspend());
  must(third.resume());
  check_equal(expected, third);
  CHECK(must(third.verify()).verdict == Verdict::same);
  CHECK(memory.makes_sense());
}

TEST_CASE("a device that fails leaves a session as it was", "[hidden]") {
  HiddenMemory memory;
  const Engine device = load_hidden("llama-gqa", memory);
  const auto tokens = tokens_of("llama-gqa");
  Session session = must(device.session({.kv = {.page_tokens = 16}}));
  must(session.append(std::span(tokens).first(10)));
  const Bytes bytes = saved(session);

  struct Case {
    const char* what;
    std::size_t transfers;
    std::function<Status(Session& fork)> work;
  };
  const std::size_t layers = device.spec().n_layers();
  const auto status = [](auto result) { return result ? Status() : Status(result.error()); };
  const Case cases[] = {
      {"append", 1, [&](Session& fork) { return status(fork.append(std::span(tokens).subspan(10, 3))); }},
      {"remove", 1, [&](Session& fork) { return fork.remove(3, 6); }},
      {"clone", 1, [&](Session& fork) { return status(fork.clone()); }},
      {"convert", 2 * layers, [&](Session& fork) { return status(fork.convert({.dtype = DType::int8})); }},
      {"verify", 2 * layers, [&](Session& fork) { return status(fork.verify()); }},
      {"save", layers, [&](Session& fork) { return fork.save([](std::span<const std::byte>) { return Status(); }); }},
      {"restore", layers, [&](Session&) { return status(device.restore(bytes)); }},
  };
  for (const Case& one : cases) {
    INFO(one.what);
    Session fork = must(session.fork());
    const Snapshot before(fork), original(session);
    for (std::size_t k = 0; k < one.transfers; ++k) {
      memory.fail(k);
      const Status done = one.work(fork);
      memory.fail_no_more();
      REQUIRE(!done);
      CHECK(done.error().code() == ErrorCode::device_error);
      CHECK(Snapshot(fork) == before);
      CHECK(Snapshot(session) == original);
    }
    memory.fail(one.transfers);
    CHECK(one.work(fork));
    memory.fail_no_more();
    CHECK(Snapshot(session) == original);
    CHECK(must(session.verify()).verdict == Verdict::same);
  }
  CHECK(memory.makes_sense());
}

}  // namespace test_hidden_memory
