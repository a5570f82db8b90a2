// What pages cost and when they are shared, copied, found and given up, in exact numbers.
#include <cmath>
#include <vector>

#include "catch.hpp"
#include "kv/held_types.hpp"
#include "kv/kv_watch.hpp"
#include "machine/rig.hpp"

namespace test_kv_pages {

using namespace tessera;
using namespace tessera::tests;

TEST_CASE("N forks of a 1,000-token prompt cost N partial pages", "[kv]") {
  for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
    Rig rig = Rig::make(DType::f16, page_tokens, 0, kPlenty);
    Twin prompt = rig.cache();
    rig.extend(prompt, 1000);
    const std::uint64_t pages = (1000 + page_tokens - 1) / page_tokens;
    CHECK(rig.used() == pages);
    std::vector<Twin> forks;
    for (int i = 0; i < 50; ++i) forks.push_back(rig.fork(prompt));
    CHECK(rig.used() == pages);
    CHECK(rig.pools.figures().copies == 0);
    for (Token i = 0; i < 50; ++i) {
      Twin& fork = forks[static_cast<std::size_t>(i)];
      rig.extend(fork, 1, 100 + i);
      CHECK(rig.used() == pages + 1 + static_cast<std::uint64_t>(i));
      CHECK(fork.cache.bytes() == pages * rig.layout.page_bytes());
    }
    CHECK(rig.pools.figures().copies == 50);
    for (Twin& fork : forks) rig.extend(fork, 1);  // its own page by now
    rig.extend(prompt, 1);                         // nobody shares it any more
    CHECK(rig.pools.figures().copies == 50);
    CHECK(rig.used() == pages + 50);
    for (const Twin& fork : forks) CHECK(rig.holds(fork));
    CHECK(rig.holds(prompt));
    forks.clear();
    CHECK(rig.used() == pages);
  }
}

TEST_CASE("forks at a page's border copy nothing", "[kv]") {
  Rig rig = Rig::make(DType::int8, 32, 0, kPlenty);
  Twin prompt = rig.cache();
  rig.extend(prompt, 1024);
  std::vector<Twin> forks;
  for (int i = 0; i < 10; ++i) forks.push_back(rig.fork(prompt));
  for (Twin& fork : forks) rig.extend(fork, 1);
  CHECK(rig.used() == 32 + 10);
  CHECK(rig.pools.figures().copies == 0);
}

TEST_CASE("the first write to a shared page copies that page alone", "[kv]") {
  Rig rig = Rig::make(DType::f32, 16, 0, kPlenty);
  Twin one = rig.cache(0);
  rig.extend(one, 160);
  Twin two = rig.fork(one);
  two.cache.truncate(90);  // within page 5
  two.truncated(90);
  rig.extend(two, 40, 8);
  for (std::size_t page = 0; page < 9; ++page) {
    CHECK((one.cache.view().pages[0][page] == two.cache.view().pages[0][page]) == (page < 5));
  }
  CHECK(rig.pools.figures().copies == 1);
  CHECK(rig.used() == 10 + 4);
  CHECK(rig.holds(one));
  CHECK(rig.holds(two));

  Twin three = rig.fork(one);
  REQUIRE(three.cache.edit(100));  // pages 6 to 9
  CHECK(rig.pools.figures().copies == 1 + 4);
  REQUIRE(three.cache.edit(100));
  CHECK(rig.pools.figures().copies == 1 + 4);
  three.stamps[100] = 1;
  rig.records.write(three.cache, 100, std::span(three.stamps).subspan(100, 1));
  CHECK(rig.holds(one));
  CHECK(rig.holds(three));
}

TEST_CASE("cached pages go in the order of their last use, the end of a chain before its beginning", "[kv]") {
  // Found of three texts of two pages each once k pages are wanted. 2 was used longest ago, then 3, then 1.
  constexpr std::uint64_t kFound[7][3] = {{32, 32, 32}, {32, 16, 32}, {32, 0, 32}, {32, 0, 16},
                                          {32, 0, 0},   {16, 0, 0},   {0, 0, 0}};
  for (std::uint64_t k = 0; k <= 6; ++k) {
    for (Token text = 1; text <= 3; ++text) {
      Rig rig = Rig::make(DType::bf16, 16, 6, 6);
      for (Token other = 1; other <= 3; ++other) {
        Twin twin = rig.cache();
        rig.extend(twin, 32, other);
      }
      CHECK(rig.findable(32, 1) == 32);
      CHECK(rig.cached() == 6);
      Twin wanting = rig.cache(0);
      REQUIRE(wanting.cache.reserve(16 * k));
      CHECK(rig.pools.figures().evictions == k);
      CHECK(rig.findable(32, text) == kFound[k][text - 1]);
      CHECK(!wanting.cache.reserve(16 * 7));
    }
  }
}

TEST_CASE("a page that a window has passed is evicted alone: what follows is found without it", "[kv]") {
  Rig rig = Rig::make(DType::f16, 16, 8, 8);
  Twin windowed = rig.cache(1, 16);
  for (int i = 0; i < 6; ++i) rig.extend(windowed, 16);  // passes page 0 first, then 1, 2, 3
  CHECK(windowed.first[0] == 64);
  CHECK(rig.cached() == 4);
  Twin wanting = rig.cache(0);
  REQUIRE(wanting.cache.reserve(16 * 2));  // two are left of the budget
  CHECK(rig.pools.figures().evictions == 0);
  REQUIRE(wanting.cache.reserve(16 * 3));
  CHECK(rig.pools.figures().evictions == 1);
  CHECK(rig.cached() == 3);
  CHECK(rig.findable(96, 7, 1, 16) == 96);
  CHECK(rig.findable(32, 7, 1, 16) == 32);
  CHECK(rig.findable(16, 7, 1, 16) == 0);  // it would need the page
  CHECK(rig.findable(96) == 0);            // without a window all pages are needed: it is another model
  REQUIRE(wanting.cache.reserve(16 * 6));
  CHECK(rig.cached() == 0);
  CHECK(rig.findable(96, 7, 1, 16) == 96);
  CHECK(rig.findable(64, 7, 1, 16) == 0);
  wanting.cache.commit(0);
  rig.extend(windowed, 16);  // what follows is offered as ever
  CHECK(rig.findable(112, 7, 1, 16) == 112);
  CHECK(rig.holds(windowed));
}

TEST_CASE("a clone keeps memory of its own", "[kv]") {
  Rig rig = Rig::make(DType::f16, 16, 0, kPlenty);
  Twin twin = rig.cache();
  rig.extend(twin, 40);
  auto cache = twin.cache.clone();
  REQUIRE(cache);
  Twin clone = twin.like(*std::move(cache));
  rig.extend(twin, 60);
  rig.extend(clone, 60);
  CHECK(rig.used() == 14);
  CHECK(rig.holds(clone));
  CHECK(rig.holds(twin));
}

TEST_CASE("figures count every event once", "[kv]") {
  Rig rig = Rig::make(DType::int8, 16, 20, 20);
  auto figures = [&] { return rig.pools.figures(); };
  Twin one = rig.cache(1), two = rig.cache(1), other = rig.cache(2);
  CHECK(rig.adopt(one, 15) == 0);  // less than a page: neither found nor missed
  CHECK(figures().misses == 0);
  CHECK(rig.adopt(one, 99) == 0);
  CHECK(figures().misses == 1);
  rig.extend(one, 100);
  CHECK(rig.adopt(other, 99) == 0);
  CHECK(figures().misses == 2);
  CHECK(rig.adopt(two, 99) == 96);
  CHECK(figures().hits == 1);
  CHECK(figures().tokens_saved == 96);
  CHECK(rig.used() == 7);
  rig.extend(two, 4);  // the tail of the same prompt: a page of its own
  CHECK(rig.used() == 8);
  rig.extend(two, 12);
  rig.extend(one, 12);  // the same page of tokens: one of the two goes back
  CHECK(rig.used() == 7);
  CHECK(rig.free() == 1);
  CHECK(one.cache.view().pages[0][6] == two.cache.view().pages[0][6]);
  CHECK(rig.holds(one));
  {
    Twin fork = rig.fork(one);
    fork.cache.truncate(105);
    fork.truncated(105);
    rig.extend(fork, 1, 8);
    CHECK(figures().copies == 1);
    CHECK(rig.used() == 8);
  }
  CHECK(rig.used() == 7);
  { const Twin gone = std::move(one), also = std::move(two); }
  CHECK(rig.used() == 0);
  CHECK(rig.cached() == 7);
  CHECK(figures().evictions == 0);
  REQUIRE(other.cache.reserve(16 * 18));
  CHECK(figures().evictions == 5);
  CHECK(rig.used() == 18);
  CHECK(rig.cached() == 2);
  CHECK(figures().held_bytes == 20 * rig.layout.page_bytes());
  CHECK(rig.findable(112) == 32);
  CHECK(figures().hits == 2);
  CHECK(figures().tokens_saved == 96 + 32);
  CHECK(figures().misses == 2);
}

TEST_CASE("a page of one identity is never another's, though all hashes are the same", "[kv]") {
  const PrefixHash constant = [](const Hash128&, std::span<const std::byte>) noexcept -> Hash128 { return {}; };
  Rig rig = Rig::make(DType::f16, 16, 0, kPlenty, {.hash = constant});
  std::vector<Twin> twins;
  for (std::uint32_t salt = 1; salt <= 3; ++salt) {
    for (const Token token : {1, 2}) {
      CHECK(rig.findable(64, token, salt) == 0);
      twins.push_back(rig.cache(salt));
      rig.extend(twins.back(), 32, token);
      rig.extend(twins.back(), 32, 9);  // the same second half everywhere
    }
  }
  for (std::uint32_t salt = 1; salt <= 3; ++salt) {
    for (const Token token : {1, 2}) CHECK(rig.findable(64, token, salt) == 32);
    CHECK(rig.findable(64, 9, salt) == 0);
  }
  for (const Twin& twin : twins) CHECK(rig.holds(twin));
}

TEST_CASE("a page with embeddings is found by their contents, though all hashes of pages are the same", "[kv]") {
  const PrefixHash constant = [](const Hash128&, std::span<const std::byte>) noexcept -> Hash128 { return {}; };
  for (const PrefixHash hash : {PrefixHash{nullptr}, constant}) {
    Rig rig = Rig::make(DType::f16, 16, 0, kPlenty, {.hash = hash});
    detail::KvWatch watch(rig.pools);
    (void)watch.take();
    std::vector<Token> tokens(32, 7);
    tokens[3] = tokens[18] = tokens[19] = -1;
    const std::vector<Hash128> contents = {{.low = 1, .high = 1}, {.low = 2, .high = 1}, {.low = 1, .high = 2}};
    const auto offer = [&](std::span<const Hash128> with) {
      Twin twin = rig.cache();
      REQUIRE(twin.cache.reserve(32));
      twin.cache.commit(32, {tokens, with});
    };
    const auto found = [&](const std::vector<Hash128>& with) { return rig.cache().cache.adopt({tokens, with}); };
    offer({});  // contents that are not known are shared with nobody
    CHECK(found({}) == 0);
    offer(std::span(contents).first(2));  // the third is not known
    CHECK(found(contents) == 16);
    offer(contents);
    CHECK(found(contents) == 32);
    CHECK(found({contents[0], contents[2], contents[1]}) == 16);
    CHECK(found({contents[1], contents[1], contents[2]}) == 0);
    CHECK(found({contents[0], contents[1]}) == 16);
    CHECK(found({}) == 0);
    const std::vector<KvEvent> events = watch.take();
    REQUIRE(events.size() == 2);
    CHECK(events[0].contents == std::vector{contents[0]});
    CHECK(events[1].contents == std::vector{contents[1], contents[2]});
    CHECK(std::ranges::equal(events[1].tokens, std::span(tokens).last(16)));
  }
}

TEST_CASE("freed pages hold NaN in every type, if they are to", "[kv]") {
  for (const DType type : test::kFewKvTypes) {
    for (const FreedPages freed : {FreedPages::fill_nan, FreedPages::leave}) {
      Rig rig = Rig::make(type, 16, 0, kPlenty, {.freed = freed});
      std::vector<std::byte*> pages;
      {
        Twin twin = rig.cache(0);
        rig.extend(twin, 48);
        for (std::uint64_t position = 0; position < 48; ++position) {
          const float one[] = {1, 1, 1, 1, 1, 1};
          Records::for_each_part(twin.cache.view(), [&](const kv::HeadPart& of, std::uint64_t) {
            kv::encode(twin.cache.view(), of, position, one);
          });
        }
        pages.assign(twin.cache.view().pages[0], twin.cache.view().pages[0] + 3);
        std::byte* const* const table = pages.data();
        twin.cache.truncate(17);  // page 2 alone
        Records::for_each_part(twin.cache.view(), [&](const kv::HeadPart& of, std::uint64_t) {
          float values[6];
          const KvView view{.layout = &rig.layout, .pages = &table};
          kv::decode(view, of, 33, values);
          CHECK(std::isnan(values[0]) == (freed == FreedPages::fill_nan));
          kv::decode(view, of, 31, values);
          CHECK(std::fabs(values[0] - 1) < 0.01f);
        });
      }
      CHECK(rig.free() == 3);
      std::byte* const* const table = pages.data();
      const KvView view{.layout = &rig.layout, .pages = &table};
      for (std::uint64_t position = 0; position < 48; ++position) {
        Records::for_each_part(view, [&](const kv::HeadPart& of, std::uint64_t) {
          float values[6];
          kv::decode(view, of, position, values);
          for (std::uint32_t d = 0; d < kv::dim_of(rig.layout, of); ++d) {
            if (std::isnan(values[d]) != (freed == FreedPages::fill_nan)) FAIL("position " << position);
          }
        });
      }
    }
  }
}

TEST_CASE("where memory refuses, cached pages have to do", "[kv]") {
  Rig rig = Rig::make(DType::f32, 16, 0, kPlenty);
  {
    Twin twin = rig.cache();
    rig.extend(twin, 64);
  }
  CHECK(rig.cached() == 4);
  Twin wanting = rig.cache(0);
  rig.memory->refuse();
  CHECK(wanting.cache.reserve(16));
  CHECK(wanting.cache.reserve(64));
  CHECK(rig.pools.figures().evictions == 4);
  const Status status = wanting.cache.reserve(80);
  REQUIRE(!status);
  CHECK(status.error().code() == ErrorCode::out_of_memory);
  rig.memory->grant();
  CHECK(wanting.cache.reserve(80));
}

TEST_CASE("a copy of a cache takes what is committed, not what is reserved", "[kv]") {
  for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
    Rig rig = Rig::make(DType::f16, 16, 0, kPlenty);
    Twin twin = rig.cache(1, 0, kind);
    rig.extend(twin, 20);
    REQUIRE(twin.cache.reserve(400));  // a pass that was cancelled
    auto clone = twin.cache.clone();
    REQUIRE(clone);
    CHECK(rig.holds(twin.like(*std::move(clone))));
    Twin converted = rig.cache(1, 0, kind == KvKind::paged ? KvKind::contiguous : KvKind::paged);
    REQUIRE(twin.cache.convert_to(converted.cache));
    converted.take_over(twin);
    CHECK(rig.holds(converted));
    CHECK(converted.cache.bytes() < 3 * rig.layout.page_bytes());
  }
}

TEST_CASE("what a window passed before it was offered is not found, and what follows is", "[kv]") {
  Rig rig = Rig::make(DType::f16, 16, 0, kPlenty);
  Twin twin = rig.cache(1, 16);
  rig.extend(twin, 100, 7, false);
  CHECK(twin.first[0] == 64);
  CHECK(rig.cached() == 0);
  rig.extend(twin, 100);
  CHECK(rig.holds(twin));
  CHECK(rig.findable(64, 7, 1, 16) == 0);
  CHECK(rig.findable(200, 7, 1, 16) == 192);
}

TEST_CASE("behind a window of one token nothing is adopted as if it were the beginning", "[kv]") {
  Rig rig = Rig::make(DType::f16, 16, 0, kPlenty);
  Twin beginning = rig.cache(1, 1), twin = rig.cache(1, 1);
  rig.extend(beginning, 17);
  rig.extend(twin, 59, 8);
  CHECK(twin.first[0] == 32);
  twin.cache.truncate(32);  // position 32 sees itself alone
  twin.truncated(32);
  CHECK(twin.length() == 32);
  CHECK(rig.adopt(twin, 17) == 0);  // what `beginning` has
  CHECK(rig.adopt(twin, 17, 8) == 16);  // what it had itself
  rig.extend(twin, 17);
  CHECK(rig.holds(twin));
}

TEST_CASE("an edit that is refused takes no page from those who may find it", "[kv]") {
  Rig rig = Rig::make(DType::f16, 16, 7, 7);
  Twin twin = rig.cache();
  rig.extend(twin, 32);
  Twin fork = rig.fork(twin);
  rig.extend(fork, 64);  // pages 2 to 5 are its own, and in the index
  Twin wanting = rig.cache(0);
  rig.extend(wanting, 16);
  CHECK(!fork.cache.edit(20));  // page 1 has to be copied
  CHECK(!fork.cache.edited());
  CHECK(rig.findable(96) == 96);
  { const Twin gone = std::move(wanting); }
  CHECK(fork.cache.edit(20));  // one copy; the others are taken from the index
  CHECK(rig.pools.figures().copies == 1);
  CHECK(rig.findable(96) == 32);
  CHECK(rig.holds(twin));
}

TEST_CASE("an empty cache is converted into a fresh one", "[kv]") {
  Rig rig = Rig::make(DType::f16, 16, 0, kPlenty);
  Rig other = Rig::make(DType::int8, 16, 0, kPlenty);
  const Twin from = rig.cache();
  Twin to = other.cache();
  REQUIRE(from.cache.convert_to(to.cache));
  CHECK(!to.cache.edited());
  other.extend(to, 40);
  CHECK(other.findable(40) == 32);
}

}  // namespace test_kv_pages
