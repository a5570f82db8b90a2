// Groups of layers: each gives back pages by itself, and what takes pages takes them in every group or in none. In exact
// numbers; the walks of test_kv_machine.cpp go over one, two and three groups too.
#include "catch.hpp"
#include "kv/pages/pools_state.hpp"
#include "machine/rig.hpp"

namespace test_kv_groups {

using namespace tessera;
using namespace tessera::tests;

namespace {

constexpr KvLayerShape kSmall{.kv_heads = 1, .key_dim = 4, .value_dim = 4};
constexpr KvLayerShape kLarge{.kv_heads = 2, .key_dim = 8, .value_dim = 4};

// Windows of 20, none, 20 and 40 tokens; the fifth layer reads the second's keys and values.
const std::vector<KvLayerNeeds> kMixed = {{.shape = kSmall, .window = 20},
                                          {.shape = kLarge},
                                          {.shape = kLarge, .window = 20},
                                          {.shape = kSmall, .window = 40},
                                          {.shape = kLarge, .shares = 1}};
enum Group : std::size_t { short_window = 0, all = 1, long_window = 2 };

Rig mixed_rig(std::uint64_t budget = 0, KvPoolOptions options = {}, DType type = DType::f16) {
  return Rig::make(kMixed, type, 16, budget, kPlenty, std::move(options));
}

// Pages that a cache holds of a group.
std::uint64_t held(const KvCache& cache, std::size_t group) {
  std::uint64_t n = 0;
  for (std::uint64_t i = 0; i < cache.layout().pages(cache.length()); ++i) n += cache.view().pages[group][i] != nullptr;
  return n;
}

// What a group holds after `n` tokens: what the window sees, and one page more.
std::uint64_t expected_pages(std::uint64_t n, std::uint64_t window) {
  const std::uint64_t all_pages = (n + 15) / 16;
  const std::uint64_t passed = window != 0 && n >= window ? (n - window + 1) / 16 : 0;
  return all_pages - (passed > 1 ? passed - 1 : 0);
}

}  // namespace

TEST_CASE("layers with the same window are a group, and layers that share have the same place", "[kv][groups]") {
  const KvLayout layout = *make_kv_layout(kMixed, DType::f32, 16);
  REQUIRE(layout.groups.size() == 3);
  CHECK(layout.groups[short_window].window == 20);
  CHECK(layout.groups[all].window == 0);
  CHECK(layout.groups[long_window].window == 40);
  CHECK(layout.layers == std::vector<KvPlace>{{0, 0}, {1, 0}, {0, 1}, {2, 0}, {1, 0}});
  const std::uint64_t small = 16 * 4 * (4 + 4), large = 16 * 4 * 2 * (8 + 4);  // bytes of a page's tokens
  CHECK(layout.groups[short_window].page_bytes == small + large);
  CHECK(layout.groups[all].page_bytes == large);
  CHECK(layout.groups[long_window].page_bytes == small);
  CHECK(layout.page_bytes() == 2 * (small + large));
  CHECK(layout.layer(2).k_offset == small);
  CHECK(layout.is_first_at_its_place(1));
  CHECK(!layout.is_first_at_its_place(4));
  CHECK(layout.is_first_at_its_place(4, 2));

  const auto refused = [](const std::vector<KvLayerNeeds>& layers) {
    const auto made = make_kv_layout(layers, DType::f32);
    return !made && made.error().code() == ErrorCode::invalid_argument;
  };
  CHECK(refused({{.shape = kSmall, .shares = 0}}));
  CHECK(refused({{.shape = kSmall}, {.shape = kLarge, .shares = 0}}));
  CHECK(refused({{.shape = kSmall}, {.shape = kSmall, .window = 8, .shares = 0}}));
  CHECK(refused({{.shape = kSmall}, {.shape = kSmall, .shares = 7}}));
}

TEST_CASE("each group holds the pages that its own window needs", "[kv][groups]") {
  for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
    for (const std::uint64_t step : {1u, 7u, 50u}) {
      Rig rig = mixed_rig();
      Twin twin = rig.cache(0, 0, kind);
      while (twin.length() < 300) {
        rig.extend(twin, step);
        const std::uint64_t n = twin.length();
        CHECK(held(twin.cache, short_window) == expected_pages(n, 20));
        CHECK(held(twin.cache, all) == expected_pages(n, 0));
        CHECK(held(twin.cache, long_window) == expected_pages(n, 40));
        if (kind == KvKind::contiguous) continue;
        std::uint64_t bytes = 0;
        for (std::size_t group = 0; group < 3; ++group) {
          bytes += held(twin.cache, group) * rig.layout.groups[group].page_bytes;
        }
        CHECK(twin.cache.bytes() == bytes);
        CHECK(rig.pools.figures().used_bytes == bytes);
      }
      CHECK(twin.cache.first() == std::max(twin.cache.first_of_group(short_window), twin.cache.first_of_group(long_window)));
      CHECK(twin.cache.first_of_layer(1) == 0);
      CHECK(rig.holds(twin));
    }
  }
  // By hand: 300 tokens are 19 pages. A window of 20 sees 281 .. 300, which begins in page 17, so 16, 17 and 18 are held;
  // one of 40 sees 261 .. 300, from page 16 on, so 15 to 18 are.
  CHECK(expected_pages(300, 0) == 19);
  CHECK(expected_pages(300, 20) == 3);
  CHECK(expected_pages(300, 40) == 4);
}

TEST_CASE("a cache can be truncated as far back as every group can", "[kv][groups]") {
  Rig rig = mixed_rig();
  for (const std::uint64_t to : {299u, 279u, 278u, 275u, 100u}) {
    Twin twin = rig.cache(0);
    rig.extend(twin, 300);
    CHECK(twin.cache.first_of_group(short_window) == 256);
    CHECK(twin.cache.first_of_group(long_window) == 240);
    twin.cache.truncate(to);
    twin.truncated(to);
    // Position `to` sees to - 19 and later in one group, which is 256 at least, and to - 39 in another: 240 at least.
    CHECK(twin.cache.length() == (to >= 279 ? to : 0));
    CHECK(rig.holds(twin));
    rig.extend(twin, 50);
    CHECK(rig.holds(twin));
  }
}

TEST_CASE("room is taken in every group or in none", "[kv][groups]") {
  // Four pages of every group.
  Rig rig = mixed_rig(4);
  Twin one = rig.cache(0), two = rig.cache(0);
  rig.extend(one, 40);
  const KvFigures before = rig.pools.figures();
  CHECK(before.used_bytes == 3 * rig.layout.page_bytes());
  const Status refused = two.cache.reserve(32);
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::cache_full);
  INFO(refused.error().message());
  CHECK(refused.error().message().find(std::to_string(2 * rig.layout.page_bytes()) + " bytes of KV pages are needed and " +
                                       std::to_string(rig.layout.page_bytes()) + " are free") != std::string::npos);
  CHECK(rig.pools.figures().used_bytes == before.used_bytes);
  CHECK(two.cache.bytes() == 0);
  rig.extend(two, 16);
  CHECK(rig.pools.figures().used_bytes == 4 * rig.layout.page_bytes());
  CHECK(rig.holds(one));
  CHECK(rig.holds(two));
  // Memory that refuses the third group's page.
  Rig poor = mixed_rig();
  Twin twin = poor.cache(0);
  poor.memory->refuse();
  CHECK(!twin.cache.reserve(1));
  CHECK(poor.pools.figures().used_bytes == 0);
  poor.memory->grant();
  poor.extend(twin, 20);
  CHECK(poor.holds(twin));
}

TEST_CASE("forks copy the shared page of every group, once where layers share it", "[kv][groups]") {
  Rig rig = mixed_rig();
  Twin one = rig.cache(0);
  rig.extend(one, 100);
  const std::uint64_t used = rig.pools.figures().used_bytes;
  Twin two = rig.fork(one);
  CHECK(rig.pools.figures().used_bytes == used);
  rig.extend(two, 1, 9);
  CHECK(rig.pools.figures().copies == 3);
  CHECK(rig.pools.figures().used_bytes == used + rig.layout.page_bytes());
  CHECK(rig.holds(one));
  CHECK(rig.holds(two));
}

TEST_CASE("a prefix is found when every group has what it needs of it", "[kv][groups]") {
  Rig rig = mixed_rig();
  {
    Twin first = rig.cache(1);
    rig.extend(first, 400);
  }
  // All 25 pages of the full group, and what the windows see of token 400: pages 23 and 22 (one more), 22 and 21.
  Twin second = rig.cache(1);
  CHECK(rig.adopt(second, 400) == 400);
  CHECK(held(second.cache, all) == 25);
  CHECK(held(second.cache, short_window) == 3);
  CHECK(held(second.cache, long_window) == 4);
  CHECK(second.cache.first_of_group(short_window) == 352);
  CHECK(second.cache.first_of_group(long_window) == 336);
  rig.extend(second, 30);
  CHECK(rig.holds(second));
  // A cache that keeps everything needs everything.
  auto keeps = KvCache::paged(rig.layout, {.capacity = 5000, .passed = PassedPages::keep, .prefix_identity = "salt 1"}, rig.pools);
  REQUIRE(keeps);
  CHECK(keeps->adopt(std::vector<Token>(400, 7)) == 400);
  CHECK(keeps->first() == 0);
  CHECK(keeps->bytes() == 25 * rig.layout.page_bytes());
}

TEST_CASE("pages that windows have passed go first, and prefixes are found without them", "[kv][groups]") {
  Rig rig = mixed_rig();
  Twin first = rig.cache(1);
  for (int i = 0; i < 25; ++i) rig.extend(first, 16);
  // The full group's pages are in use; the windows' are cached but for what they still see.
  const std::uint64_t small = rig.layout.groups[long_window].page_bytes, both = rig.layout.groups[short_window].page_bytes;
  CHECK(rig.pools.figures().cached_bytes == 22 * both + 21 * small);
  CHECK(rig.findable(400) == 400);
  CHECK(rig.findable(160) == 160);
  rig.pools.trim();
  CHECK(rig.pools.figures().cached_bytes == 0);
  CHECK(rig.findable(400) == 400);
  // What it would need of the windows at 10 pages is gone.
  CHECK(rig.findable(160) == 0);
  CHECK(rig.holds(first));
}

TEST_CASE("a page of a group without a window takes what follows it out of the index, in all groups", "[kv][groups]") {
  Rig rig = mixed_rig(25);
  {
    Twin first = rig.cache(1);
    rig.extend(first, 160);
  }
  CHECK(rig.pools.figures().cached_bytes == 10 * rig.layout.page_bytes());
  {
    const std::lock_guard lock(rig.pools.state()->mutex);
    // The beginning of the chain is lost, in the group without a window.
    auto& state = *rig.pools.state();
    detail::PrefixNode* root = state.index.root("salt 1", state.pooled(rig.layout));
    REQUIRE(root != nullptr);
    const std::vector<Token> tokens(16, 7);
    state.lose(state.index.child(*root, tokens)->pages[all]);
    CHECK(state.index.size() == 0);
  }
  CHECK(rig.pools.figures().cached_bytes == 0);
  CHECK(rig.findable(160) == 0);
}

TEST_CASE("suspended groups come back together, with the same bits", "[kv][groups]") {
  KvPoolOptions options{.file = std::filesystem::temp_directory_path() / "tessera-groups", .file_bytes = 1 << 20};
  Rig rig = mixed_rig(0, options);
  Twin twin = rig.cache(1);
  rig.extend(twin, 300);
  const std::uint64_t bytes = twin.cache.bytes(), sum = twin.cache.checksum(1);
  CHECK(twin.cache.checksum(4) == sum);  // of the same place
  REQUIRE(twin.cache.suspend());
  REQUIRE(twin.cache.prefetch());
  REQUIRE(twin.cache.resume());
  CHECK(twin.cache.bytes() == bytes);
  CHECK(twin.cache.checksum(1) == sum);
  CHECK(rig.holds(twin));
  rig.extend(twin, 20);
  CHECK(rig.holds(twin));
  CHECK(rig.findable(320) == 320);
}

TEST_CASE("copies and conversions take what each group holds", "[kv][groups]") {
  Rig rig = mixed_rig();
  Twin twin = rig.cache(0);
  rig.extend(twin, 300);
  auto clone = twin.cache.clone();
  REQUIRE(clone);
  CHECK(clone->bytes() == twin.cache.bytes());
  Rig other = Rig::make(kMixed, DType::f16, 64, 0, kPlenty);
  Twin to = other.cache(0, 0, KvKind::contiguous);
  REQUIRE(twin.cache.convert_to(to.cache));
  to.take_over(twin);
  CHECK(other.holds(to));
  for (std::size_t layer = 0; layer < kMixed.size(); ++layer) {
    CHECK(clone->checksum(layer) == twin.cache.checksum(layer));
    CHECK(to.cache.checksum(layer) == twin.cache.checksum(layer));
  }
  // Other windows are another model.
  Rig plain = Rig::make({{.shape = kSmall}, {.shape = kLarge}, {.shape = kLarge}, {.shape = kSmall}, {.shape = kLarge, .shares = 1}},
                        DType::f16, 16, 0, kPlenty);
  Twin wrong = plain.cache(0);
  CHECK(twin.cache.convert_to(wrong.cache).error().code() == ErrorCode::invalid_argument);
}

}  // namespace test_kv_groups
