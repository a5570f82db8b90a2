// Files of the present format are restored: tests/data (see its README).
#include <cstdlib>

#include "engine/snapshot_bytes.hpp"

namespace test_snapshot_golden {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

namespace {

const fs::path kData = fs::path(TESSERA_SOURCE_DIR) / "tests/data";
const std::vector<Token> kPrompt = {1, 50, 7, 93, 22, 64, 31, 8, 76, 45, 12, 99, 5, 60, 33, 81, 2, 70, 19};
const std::vector<Token> kNext = {17, 3, 88};

struct Golden {
  const char* file;
  DType dtype;
  std::vector<Token> tokens;               // that the file has
  std::size_t position;
  std::array<std::uint64_t, 2> checksums;  // KvCache::checksum() of each layer
  // How it came to be.
  void (*make)(Session& session);
};

const Golden kGoldens[] = {
    {"snapshot-v1-f32.tkv", DType::f32, kPrompt, 19, {0x2405e606a541efe0, 0xdf3364786c495c45},
     [](Session& session) { must(session.append(kPrompt)); }},
    {"snapshot-v1-int8.tkv", DType::int8, {1, 50, 7, 93, 11, 81}, 5, {0xafb5db2ae11bbabc, 0xe2a84ce9a7e2e538},
     [](Session& session) {  // its last token is pending
       must(session.append(std::vector<Token>{1, 50, 7, 93}));
       Sampler greedy = sampling::chain().greedy().build();
       must(session.generate(greedy, {.max_tokens = 2, .end_of_generation = EndOfGeneration::ignore}, {}));
     }},
    {"snapshot-v1-edited.tkv", DType::f16, {1, 50, 64, 31, 8, 76}, 6, {0x2e2d2070fcb0209a, 0x51f77a19bc40b416},
     [](Session& session) {
       must(session.append(std::vector<Token>{1, 50, 7, 93, 22, 64, 31}));
       must(session.remove(2, 5));
       must(session.append(std::vector<Token>{8, 76}));
     }},
};

// The one family of version 1's files. With more to choose from, this is where to ask for it.
Engine frozen_engine() { return must(Engine::load(kData / "frozen-tiny.gguf", {.numerics = Numerics::reference, .threads = 1})); }

}  // namespace

TEST_CASE("files of version 1 are restored and go on with the bits of a fresh computation", "[snapshot]") {
  const Engine engine = frozen_engine();
  for (const Golden& golden : kGoldens) {
    INFO(golden.file);
    const auto path = kData / golden.file;
    Session fresh = must(engine.session({.kv = {.dtype = golden.dtype}}));
    golden.make(fresh);
    const Bytes bytes = saved(must(engine.restore(path)));
    for (const Place& place : kPlaces) {
      Session session = must(engine.restore(path, place_options(place)));
      CHECK(std::ranges::equal(session.tokens(), golden.tokens));
      CHECK(session.position() == golden.position);
      CHECK(session.kv().dtype() == golden.dtype);
      for (std::size_t layer = 0; layer < 2; ++layer) CHECK(session.kv().checksum(layer) == golden.checksums[layer]);
      check_same(session, fresh);
      Session expected = must(fresh.clone());
      CHECK(same_bits(all_logits(session, kNext, 1), all_logits(expected, kNext, kNext.size())));
    }
  }
}

TEST_CASE("as long as version 1 is what is written, it is written as it was", "[snapshot]") {
  const Engine engine = frozen_engine();
  for (const Golden& golden : kGoldens) {
    INFO(golden.file);
    std::ifstream in(kData / golden.file, std::ios::binary);
    REQUIRE(in);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(text));
    REQUIRE(number_at<std::uint32_t>(Bytes(bytes.begin(), bytes.end()), 8) == 1);
    CHECK(std::ranges::equal(saved(must(engine.restore(bytes))), bytes));
  }
}

// Run by hand, when the format has changed: writes into TESSERA_TEST_FOLDER, and tells what stands above.
TEST_CASE("write golden files", "[.write]") {
  const char* folder = std::getenv("TESSERA_TEST_FOLDER");
  REQUIRE(folder != nullptr);
  const Engine engine = frozen_engine();
  for (const Golden& golden : kGoldens) {
    Session session = must(engine.session({.kv = {.dtype = golden.dtype, .page_tokens = 16}}));
    golden.make(session);
    const auto path = fs::path(folder) / golden.file;
    REQUIRE_FALSE(fs::exists(path));
    must(session.save(path));
    std::string tokens;
    for (const Token token : session.tokens()) tokens += std::to_string(token) + ", ";
    WARN(golden.file << ": tokens " << tokens << "position " << session.position() << ", checksums " << std::hex << "0x"
                     << session.kv().checksum(0) << ", 0x" << session.kv().checksum(1));
  }
}

}  // namespace test_snapshot_golden
