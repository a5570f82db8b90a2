// The bytes that PageCost counts are those that caches take from their pools.
#include <random>

#include <tessera/unstable/kv/page_cost.hpp>

#include "catch.hpp"
#include "machine/checked_memory.hpp"

namespace test_page_cost {

using namespace tessera;
using namespace tessera::tests;

namespace {

struct Kind {
  const char* name;
  std::vector<KvLayerNeeds> layers;
};

const KvLayerShape kShape{.kv_heads = 2, .key_dim = 6, .value_dim = 4}, kOther{.kv_heads = 1, .key_dim = 32, .value_dim = 32};

std::vector<Kind> kinds_of(std::uint64_t window) {
  return {{"all tokens", {{.shape = kShape}, {.shape = kOther}}},
          {"a window", {{.shape = kShape, .window = window}}},
          {"two groups", {{.shape = kShape, .window = window}, {.shape = kOther}}},
          {"a wide layer", {{.shape = kShape, .window = window, .dtype = DType::f32}, {.shape = kShape, .window = window}}},
          {"shared keys", {{.shape = kShape, .window = window}, {.shape = kOther}, {.shape = kShape, .window = window, .shares = 0}}},
          {"recurrent layers", {{.shape = {.state_bytes = 100}}, {.shape = kOther}, {.shape = {.state_bytes = 200}}}}};
}

// Pools whose held bytes are the most bytes that were ever used at once: a slab is one page, and no page is given back to the memory.
struct Pools {
  CheckedMemory memory;
  KvPools pools = *KvPools::create({.memory = &memory, .keep = std::uint64_t{1} << 40, .max_slab_pages = 1});

  [[nodiscard]] KvCache cache(const KvLayout& layout, const char* identity = "") const {
    auto made = KvCache::paged(layout, {.capacity = 1000, .prefix_identity = identity}, pools);
    REQUIRE(made);
    return *std::move(made);
  }
  [[nodiscard]] std::uint64_t most() const { return pools.figures().held_bytes; }
  [[nodiscard]] std::uint64_t used() const { return pools.figures().used_bytes; }
};

void grow(KvCache& cache, std::uint64_t end) {
  REQUIRE(cache.reserve(end));
  cache.commit(end);
  REQUIRE(cache.length() == end);
}

std::uint64_t bytes_at_once(const PageCost& cost, std::uint64_t tokens) {
  std::uint64_t sum = 0;
  for (const PageCost::Group& group : cost.groups) sum += cost.pages_at_once(group, tokens) * group.page_bytes;
  return sum;
}

template <class Fn>
void for_each_layout(Fn&& fn) {
  for (const DType type : kv_types()) {
    for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
      for (const std::uint64_t window : {1u, 2u, 16u, 17u, 18u, 33u, 100u}) {
        for (const Kind& kind : kinds_of(window)) {
          INFO(to_string(type) << ", pages of " << page_tokens << ", " << kind.name << ", a window of " << window);
          const auto layout = make_kv_layout(kind.layers, type, page_tokens);
          REQUIRE(layout);
          fn(*layout);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("a sequence that grows token by token takes the bytes that are counted for it", "[kv][cost]") {
  constexpr std::uint64_t kTokens = 250;
  for_each_layout([](const KvLayout& layout) {
    const PageCost cost = PageCost::of(layout, kDefaultCheckpoints, false);
    const Pools pools;
    KvCache cache = pools.cache(layout);
    for (std::uint64_t n = 1; n <= kTokens; ++n) {
      grow(cache, n);
      REQUIRE(pools.most() <= cost.bytes(n));
      REQUIRE(pools.used() == cache.bytes());
    }
    if (!layout.has_state()) CHECK(pools.most() == cost.bytes(kTokens));
  });
}

TEST_CASE("a sequence that grows in one call takes the bytes that are counted for it", "[kv][cost]") {
  for_each_layout([](const KvLayout& layout) {
    for (const std::uint64_t n : {1u, 16u, 100u, 700u}) {
      for (const char* identity : {"", "offers"}) {
        const PageCost cost = PageCost::of(layout, kDefaultCheckpoints, *identity != 0);
        const Pools pools;
        KvCache cache = pools.cache(layout, identity);
        grow(cache, n);
        CHECK(pools.most() <= bytes_at_once(cost, n));
        if (!layout.has_state()) CHECK(pools.most() == cost.bytes_of_all(n));
      }
    }
  });
}

TEST_CASE("a step takes at most the growth that is counted for it", "[kv][cost]") {
  std::mt19937 random(1);
  for_each_layout([&](const KvLayout& layout) {
    const PageCost cost = PageCost::of(layout, kDefaultCheckpoints, true);
    const bool gives_back = std::ranges::any_of(layout.groups, [](const KvGroup& group) { return group.window != 0; });
    const Pools pools;
    KvCache cache = pools.cache(layout);
    std::vector<KvCache> forks;
    while (cache.length() < 300) {
      const std::uint64_t length = cache.length(), end = length + random() % 40 + 1;
      const bool copies = random() % 4 == 0 && length % layout.page_tokens != 0;
      forks.clear();
      if (copies) forks.push_back(*cache.fork());
      const std::uint64_t before = pools.used();
      REQUIRE(cache.reserve(end));
      const PageCost::Growth growth = cost.growth(length, end, copies ? 1 : 0);
      CHECK(pools.used() - before <= growth.bytes);
      if (!layout.has_state() && !gives_back) CHECK(pools.used() - before == growth.bytes);
      cache.commit(end);
    }
  });
}

TEST_CASE("a contiguous sequence takes the bytes of all its pages, and less than a granule more for each table", "[kv][cost]") {
  CheckedMemory memory;
  for_each_layout([&](const KvLayout& layout) {
    const PageCost cost = PageCost::of(layout, kDefaultCheckpoints, false);
    if (layout.has_state() || layout.groups.front().window != 0) return;
    auto cache = KvCache::contiguous(layout, {.capacity = 1000}, memory);
    REQUIRE(cache);
    for (std::uint64_t n = 100; n < 1000; n += 100) {
      grow(*cache, n);
      CHECK(cache->bytes() >= cost.bytes_of_all(n));
      CHECK(cache->bytes() < cost.bytes_of_all(n) + layout.groups.size() * memory.granularity());
    }
  });
}

}  // namespace test_page_cost
