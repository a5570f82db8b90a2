// KV caches in memory that the processor cannot address: everything that they can do in the host's, with the same bits,
// and a device that fails changes nothing. The walks of test_kv_machine.cpp use such memory too.
#include <cmath>
#include <filesystem>

#include <unistd.h>

#include "kv/held_types.hpp"
#include "kv/pages/pools_state.hpp"
#include "machine/rig.hpp"

namespace test_kv_hidden {

using namespace tessera;
using namespace tessera::tests;
namespace fs = std::filesystem;

namespace {

constexpr KvKind kKinds[] = {KvKind::paged, KvKind::contiguous};

Rig hidden_rig(DType type, std::uint32_t page_tokens, KvPoolOptions options = {}, std::uint64_t keep = kPlenty) {
  return Rig::make(type, page_tokens, 0, keep, std::move(options), Pages::hidden);
}

KvPoolOptions with_file() {
  return {.file = fs::temp_directory_path() / fmt::format("tessera-hidden-{}", ::getpid()), .file_bytes = 1 << 20};
}

std::vector<std::uint64_t> checksums(const KvCache& cache) {
  std::vector<std::uint64_t> sums;
  for (std::size_t layer = 0; layer < cache.layout().layers.size(); ++layer) sums.push_back(cache.checksum(layer));
  return sums;
}

// Finite numbers, so that they can be decoded and encoded.
void fill_with_numbers(const KvCache& cache) {
  std::vector<std::uint64_t> firsts;
  for (std::size_t group = 0; group < cache.layout().groups.size(); ++group) firsts.push_back(cache.first_of_group(group));
  Records::change(cache, firsts, cache.length(),
                  [&](const KvView& view, const kv::HeadPart& of, std::uint64_t part, std::uint64_t first) {
    for (std::uint64_t position = first; position < cache.length(); ++position) {
      std::vector<float> values(kv::dim_of(*view.layout, of));
      for (std::size_t d = 0; d < values.size(); ++d) {
        values[d] = static_cast<float>(mix(position, part * 8 + d) % 2000) / 100.0f - 10.0f;
      }
      kv::encode(view, of, position, values.data());
    }
  });
}

// Waits for what is written behind.
void drain(const KvPools& pools) {
  std::unique_lock lock(pools.state()->mutex);
  pools.state()->written.wait(lock, [&] { return pools.state()->writing == 0; });
}

// Lets each transfer of `work` fail in turn, until none is left to fail. What work returns is whether it succeeded;
// check(failed) follows each time.
template <class Work, class Check>
std::size_t fail_each(HiddenMemory& memory, Work&& work, Check&& check) {
  for (std::size_t k = 0;; ++k) {
    INFO("transfer " << k << " fails");
    const std::size_t before = memory.transfers();
    memory.fail(k);
    work();
    const bool failed = memory.transfers() - before > k;
    memory.fail_no_more();
    check(failed);
    CHECK(memory.makes_sense());
    if (!failed) return k;
  }
}

}  // namespace

TEST_CASE("what a cache holds has the same checksum in any memory, of every type, layout and page size", "[kv][hidden]") {
  for (const DType type : test::kFewKvTypes) {
    for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
      for (const KvKind kind : kKinds) {
        Rig host = Rig::make(type, page_tokens, 0, kPlenty);
        Rig device = hidden_rig(type, page_tokens);
        Twin one = host.cache(1, 0, kind), other = device.cache(1, 0, kind);
        for (const std::uint64_t n : {5u, 60u, 1u, 94u}) {
          host.extend(one, n);
          device.extend(other, n);
          CHECK(checksums(one.cache) == checksums(other.cache));
        }
        CHECK(device.holds(other));
        one.cache.truncate(70);
        other.cache.truncate(70);
        CHECK(checksums(one.cache) == checksums(other.cache));
        CHECK(!other.cache.memory().addressable());
        CHECK(device.hidden->makes_sense());
      }
    }
  }
}

TEST_CASE("pages of a device are forked, copied before a write, offered and found", "[kv][hidden]") {
  for (const DType type : test::kFewKvTypes) {
    Rig rig = hidden_rig(type, 16);
    Twin one = rig.cache();
    rig.extend(one, 90);
    Twin two = rig.fork(one), three = rig.fork(one);
    CHECK(rig.used() == 6);
    rig.extend(two, 20, 8);
    CHECK(rig.pools.figures().copies == 1);
    REQUIRE(three.cache.edit(20));  // pages 1 to 5
    three.edited = true;
    CHECK(rig.pools.figures().copies == 6);
    for (Stamp& stamp : std::span(three.stamps).subspan(20, 30)) stamp = 1;
    rig.records.write(three.cache, 20, std::span(three.stamps).subspan(20, 30));
    for (const Twin* twin : {&one, &two, &three}) CHECK(rig.holds(*twin));
    CHECK(rig.findable(90) == 80);
    CHECK(rig.hidden->makes_sense());
  }
}

TEST_CASE("copies and conversions go between all memories, types, layouts and page sizes", "[kv][hidden]") {
  for (const DType from_type : test::kFewKvTypes) {
    for (const std::uint64_t window : {0u, 20u}) {
      // Everything three times: in the host's memory, within a device's, and from each to the other.
      Rig from_rigs[] = {Rig::make(from_type, 32, 0, kPlenty), hidden_rig(from_type, 32)};
      std::vector<Twin> from;
      for (Rig& rig : from_rigs) {
        from.push_back(rig.cache(0, window));
        rig.extend(from.back(), 100);
        fill_with_numbers(from.back().cache);
        const auto clone = from.back().cache.clone();
        REQUIRE(clone);
        CHECK(checksums(*clone) == checksums(from.back().cache));
      }
      REQUIRE(checksums(from[0].cache) == checksums(from[1].cache));
      for (const DType to_type : test::kFewKvTypes) {
        for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
          for (const KvKind kind : kKinds) {
            INFO(to_string(from_type) << " to " << to_string(to_type) << ", pages of " << page_tokens);
            Rig to_rigs[] = {Rig::make(to_type, page_tokens, 0, kPlenty), hidden_rig(to_type, page_tokens)};
            std::vector<std::uint64_t> expected;
            for (const Twin& source : from) {
              for (Rig& rig : to_rigs) {
                Twin to = rig.cache(0, window, kind);
                REQUIRE(source.cache.convert_to(to.cache));
                CHECK(to.cache.edited() == (from_type != to_type));
                CHECK(to.cache.first() == source.cache.first());
                if (expected.empty()) expected = checksums(to.cache);
                CHECK(checksums(to.cache) == expected);
              }
            }
          }
        }
      }
      CHECK(from_rigs[1].hidden->makes_sense());
    }
  }
}

TEST_CASE("pages of a device go to the file and come back, and are found there", "[kv][hidden]") {
  for (const DType type : test::kFewKvTypes) {
    Rig rig = hidden_rig(type, 64, with_file(), 3);
    Twin one = rig.cache(1);
    rig.extend(one, 500);
    const auto sums = checksums(one.cache);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(one.cache.suspend());
      CHECK(one.cache.checksum(0) == 0);
      if (i == 0) drain(rig.pools);
      if (i == 1) REQUIRE(one.cache.prefetch());
      REQUIRE(one.cache.resume());
      CHECK(checksums(one.cache) == sums);
      CHECK(rig.holds(one));
    }
    CHECK(rig.pools.figures().pages_written > 0);
    CHECK(rig.pools.figures().pages_read > 0);
    rig.extend(one, 64);
    { const Twin gone = std::move(one); }  // nobody uses its pages: some are kept, some only in the file
    drain(rig.pools);
    CHECK(rig.findable(564) == 512);
    CHECK(rig.hidden->makes_sense());
  }
}

TEST_CASE("a page larger than the file's pieces goes to the file and comes back", "[kv][hidden]") {
  const KvLayerShape shapes[] = {{.kv_heads = 8, .key_dim = 128, .value_dim = 128},
                                 {.kv_heads = 8, .key_dim = 128, .value_dim = 64}};
  const auto layout = make_kv_layout(shapes, DType::f32, 64);
  REQUIRE(layout);
  REQUIRE(layout->page_bytes() > 700'000);
  HiddenMemory memory;
  KvPoolOptions options = with_file();
  options.memory = &memory;
  options.file_bytes = 8 << 20;
  const auto pools = KvPools::create(options);
  REQUIRE(pools);
  auto cache = KvCache::paged(*layout, {.capacity = 1000}, *pools);
  REQUIRE(cache);
  REQUIRE(cache->reserve(300));
  cache->commit(300);
  fill_with_numbers(*cache);
  const auto sums = checksums(*cache);
  REQUIRE(cache->suspend());
  drain(*pools);
  CHECK(cache->bytes() == 0);
  REQUIRE(cache->resume());
  CHECK(checksums(*cache) == sums);
}

TEST_CASE("freed pages of a device hold NaN, if they are to", "[kv][hidden]") {
  for (const DType type : test::kFewKvTypes) {
    Rig rig = hidden_rig(type, 16, {.freed = FreedPages::fill_nan});
    std::vector<std::byte*> pages;
    {
      Twin twin = rig.cache(0);
      rig.extend(twin, 48);
      fill_with_numbers(twin.cache);
      for (std::size_t page = 0; page < 3; ++page) pages.push_back(HiddenMemory::reveal(twin.cache.view().pages[0][page]));
    }
    std::byte* const* const table = pages.data();
    const KvView view{.layout = &rig.layout, .pages = &table};
    for (std::uint64_t position = 0; position < 48; ++position) {
      float values[6];
      kv::decode(view, {.layer = 1, .part = kv::KeyOrValue::value, .head = 0}, position, values);
      for (const float value : values) CHECK(std::isnan(value));
    }
  }
}

TEST_CASE("a layer at hand is the cache itself in the host's memory, and a copy of a device's", "[kv][hidden]") {
  for (const KvKind kind : kKinds) {
    for (const Pages where : {Pages::host, Pages::hidden}) {
      Rig rig = Rig::make(DType::int8, 16, 0, kPlenty, {}, where);
      Twin twin = rig.cache(0, 0, kind);
      rig.extend(twin, 75);
      const std::size_t transfers = rig.hidden->transfers();
      {
        counted::Scope scope;
        const auto at = kv::LayerOnHost::read(twin.cache, 1, 20, 70);
        REQUIRE(at);
        scope.stop();
        CHECK((counted::count == 0) == (where == Pages::host));
        CHECK((at->view().pages[0] == twin.cache.view().pages[0]) == (where == Pages::host));
      }
      CHECK(rig.hidden->transfers() - transfers == (where == Pages::host ? 0 : 1));  // all pages at once
      // A part that begins and ends in the middle of pages: what is beside it stays.
      for (Stamp& stamp : std::span(twin.stamps).subspan(37, 14)) stamp = mix(stamp, 5);
      rig.records.write(twin.cache, 37, std::span(twin.stamps).subspan(37, 14));
      CHECK(rig.holds(twin));
      CHECK(kv::LayerOnHost::read(twin.cache, 0, 75, 75));
    }
  }
}

TEST_CASE("a device that fails is an error, and the cache is as it was", "[kv][hidden]") {
  for (const DType type : {DType::f32, DType::int8}) {
    Rig rig = hidden_rig(type, 16);
    HiddenMemory& memory = *rig.hidden;
    Twin one = rig.cache(0);
    rig.extend(one, 90);
    Status done;

    SECTION("growing: the copy of the page that others hold") {
      Twin two = rig.fork(one);
      const auto used = rig.used();
      CHECK(fail_each(memory, [&] { done = two.cache.reserve(200); }, [&](bool failed) {
              CHECK(done.has_value() != failed);
              if (failed) {
                CHECK(done.error().code() == ErrorCode::device_error);
                CHECK(rig.used() == used);
                CHECK(rig.pools.figures().copies == 0);
              }
              CHECK(rig.holds(one));
              CHECK(rig.holds(two));
            }) == 1);
      rig.extend(two, 50, 9);
      CHECK(rig.holds(two));
      CHECK(rig.holds(one));
    }
    SECTION("an edit: the copies of all pages behind it, at once") {
      Twin two = rig.fork(one);
      CHECK(fail_each(memory, [&] { done = two.cache.edit(3); }, [&](bool failed) {
              CHECK(done.has_value() != failed);
              CHECK(two.cache.edited() != failed);
              CHECK(rig.holds(two));
            }) == 1);
    }
    SECTION("a clone, of either kind") {
      for (const KvKind kind : kKinds) {
        Twin source = rig.cache(0, 0, kind);
        rig.extend(source, 90);
        const auto held = rig.used();
        const auto bytes = rig.memory->committed();
        bool made = false;
        CHECK(fail_each(memory, [&] { made = source.cache.clone().has_value(); },
                        [&](bool failed) {
                          CHECK(made != failed);
                          CHECK(rig.used() == held);  // the clone is gone, or was never there
                          CHECK(rig.memory->committed() == bytes);
                          CHECK(rig.holds(source));
                        }) == 1);
      }
    }
    SECTION("a conversion: what was to hold it is empty, and can") {
      for (const DType to_type : test::kFewKvTypes) {
        for (const KvKind kind : kKinds) {
          Rig other = hidden_rig(to_type, 32);
          for (HiddenMemory* failing : {&memory, other.hidden.get()}) {
            Twin to = other.cache(0, 0, kind);
            const std::size_t layers = rig.layout.layers.size();
            CHECK(fail_each(*failing, [&] { done = one.cache.convert_to(to.cache); }, [&](bool failed) {
                    CHECK(done.has_value() != failed);
                    CHECK(to.cache.length() == (failed ? 0 : 90));
                    CHECK(to.cache.bytes() / other.layout.page_bytes() == (failed ? 0 : 3));
                    CHECK(rig.holds(one));
                    if (failed) {
                      CHECK(done.error().code() == ErrorCode::device_error);
                      CHECK(!to.cache.edited());
                      return;
                    }
                    to.take_over(one);
                    if (to_type == type) CHECK(other.holds(to));
                  }) == layers);
          }
        }
      }
    }
    SECTION("a checksum: there is none") {
      const auto sum = one.cache.checksum(1);
      memory.fail(0);
      CHECK(one.cache.checksum(1) == 0);
      CHECK(one.cache.checksum(1) == sum);
    }
    SECTION("a layer that is read or written") {
      memory.fail(0);
      const auto unread = kv::LayerOnHost::read(one.cache, 0, 0, 90);
      REQUIRE(!unread);
      CHECK(unread.error().code() == ErrorCode::device_error);
      const auto read = kv::LayerOnHost::read(one.cache, 0, 0, 90);
      REQUIRE(read);
      memory.fail(0);
      CHECK(!read->write_back());
      CHECK(read->write_back());  // all of it is written anew
      CHECK(rig.holds(one));
      CheckedMemory host;
      host.refuse();
      const auto no_room = kv::LayerOnHost::read(one.cache, 0, 0, 90, host);
      REQUIRE(!no_room);
      CHECK(no_room.error().code() == ErrorCode::out_of_memory);
    }
    CHECK(rig.holds(one));
    CHECK(memory.makes_sense());
  }
}

TEST_CASE("a device that fails on the way to the file or back loses nothing", "[kv][hidden]") {
  Rig rig = hidden_rig(DType::f16, 16, with_file());
  HiddenMemory& memory = *rig.hidden;
  Twin one = rig.cache(0);
  rig.extend(one, 90);  // 6 pages
  // Away: the page stays in memory.
  CHECK(fail_each(memory, [&] {
          REQUIRE(one.cache.suspend());
          drain(rig.pools);
        }, [&](bool failed) {
          CHECK(one.cache.bytes() == (failed ? rig.layout.page_bytes() : 0));
          REQUIRE(one.cache.resume());
          CHECK(rig.holds(one));
        }) == 6);
  CHECK(rig.pools.figures().file_errors == 6);
  // Back: all pages or none.
  for (std::size_t k = 0; k < 6; ++k) {
    REQUIRE(one.cache.suspend());
    drain(rig.pools);
    memory.fail(k);
    const Status done = one.cache.resume();
    memory.fail_no_more();
    REQUIRE(!done);
    CHECK(done.error().code() == ErrorCode::io);
    CHECK(one.cache.suspended());
    CHECK(one.cache.length() == 90);
    REQUIRE(one.cache.resume());
    CHECK(rig.holds(one));
  }
  rig.extend(one, 10);
  CHECK(rig.holds(one));
}

TEST_CASE("a page that cannot be brought back from the file is not found", "[kv][hidden]") {
  Rig rig = hidden_rig(DType::f16, 16, with_file(), 1);
  {
    Twin one = rig.cache(1);
    rig.extend(one, 160);
  }
  drain(rig.pools);
  REQUIRE(rig.pools.figures().pages_written > 0);
  rig.hidden->fail(0);
  const std::uint64_t found = rig.findable(160);
  CHECK(found < 160);
  rig.hidden->fail_no_more();
  CHECK(rig.pools.figures().file_errors == 0);
  Twin again = rig.cache(1);
  CHECK(rig.adopt(again, 160) <= 160);  // what is found holds what it should: adopt() checks
}

}  // namespace test_kv_hidden
