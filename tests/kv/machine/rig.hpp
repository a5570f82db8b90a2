// Pools, and caches whose records are stamps, for test cases with exact numbers.
#pragma once

#include <memory>
#include <vector>

#include "catch.hpp"
#include "checked_memory.hpp"
#include "hidden_memory.hpp"
#include "twin.hpp"

namespace tessera::tests {

inline constexpr std::uint64_t kPlenty = 1 << 20;  // pages to keep

enum class Pages { host, hidden };

struct Rig {
  KvLayout layout;
  std::unique_ptr<CheckedMemory> memory;
  std::unique_ptr<HiddenMemory> hidden;
  Pages where;
  KvPools pools;
  Records records = {};

  // Budget and keep in pages; slabs of one page.
  static Rig make(DType type, std::uint32_t page_tokens, std::uint64_t budget, std::uint64_t keep,
                  KvPoolOptions options = {}, Pages where = Pages::host) {
    return make({{.shape = {.kv_heads = 2, .key_dim = 4, .value_dim = 2}},
                 {.shape = {.kv_heads = 1, .key_dim = 2, .value_dim = 6}}},
                type, page_tokens, budget, keep, std::move(options), where);
  }
  static Rig make(const std::vector<KvLayerNeeds>& layers, DType type, std::uint32_t page_tokens, std::uint64_t budget,
                  std::uint64_t keep, KvPoolOptions options = {}, Pages where = Pages::host) {
    auto layout = make_kv_layout(layers, type, page_tokens);
    REQUIRE(layout);
    auto memory = std::make_unique<CheckedMemory>();
    auto hidden = std::make_unique<HiddenMemory>(*memory);
    options.memory = where == Pages::host ? static_cast<Memory*>(memory.get()) : hidden.get();
    options.budget = budget * layout->page_bytes();
    options.keep = keep * layout->page_bytes();
    options.max_slab_pages = 1;
    auto pools = KvPools::create(options);
    REQUIRE(pools);
    return {.layout = *std::move(layout),
            .memory = std::move(memory),
            .hidden = std::move(hidden),
            .where = where,
            .pools = *std::move(pools)};
  }
  Memory& of_pages() const { return where == Pages::host ? static_cast<Memory&>(*memory) : *hidden; }

  Twin cache(std::uint32_t salt = 1, std::uint64_t window = 0, KvKind kind = KvKind::paged) {
    KvLayout windowed = layout;
    if (window != 0) windowed.groups[0].window = window;
    const KvCacheOptions options{.capacity = 5000, .prefix_identity = salt == 0 ? "" : fmt::format("salt {}", salt)};
    auto made = kind == KvKind::paged ? KvCache::paged(windowed, options, pools)
                                      : KvCache::contiguous(windowed, options, of_pages());
    REQUIRE(made);
    return {.cache = *std::move(made), .layout = windowed, .kind = kind, .capacity = 5000, .salt = salt};
  }
  Twin fork(const Twin& twin) {
    auto made = twin.cache.fork();
    REQUIRE(made);
    return twin.like(*std::move(made));
  }
  // n more tokens, all of them `token`; their full pages are offered.
  void extend(Twin& twin, std::uint64_t n, Token token = 7, bool offer = true) {
    const std::uint64_t begin = twin.length();
    REQUIRE(twin.cache.reserve(begin + n));
    for (std::uint64_t i = 0; i < n; ++i) twin.append(token, twin.stamp_of(token));
    records.write(twin.cache, begin, std::span(twin.stamps).subspan(begin));
    twin.cache.commit(twin.length(), offer ? std::span<const Token>(twin.tokens) : std::span<const Token>());
    twin.committed();
  }
  std::uint64_t adopt(Twin& twin, std::uint64_t n, Token token = 7) {
    const std::uint64_t found = twin.cache.adopt(std::vector<Token>(n, token));
    for (std::uint64_t i = 0; i < found; ++i) twin.append(token, twin.stamp_of(token));
    twin.reserved = twin.length();
    twin.take_firsts();
    CHECK(holds(twin));
    return found;
  }
  // How many of n tokens a new cache would find.
  std::uint64_t findable(std::uint64_t n, Token token = 7, std::uint32_t salt = 1, std::uint64_t window = 0) {
    Twin twin = cache(salt, window);
    return adopt(twin, n, token);
  }
  bool holds(const Twin& twin) {
    for (std::size_t group = 0; group < twin.groups(); ++group) {
      if (twin.cache.first_of_group(group) != twin.first[group]) return false;
    }
    return twin.cache.length() == twin.length() && twin.cache.first() == std::ranges::max(twin.first) &&
           records.first_wrong(twin.cache, twin.first, twin.stamps) == twin.length();
  }
  // Pages, if there is one group.
  std::uint64_t used() const { return pools.figures().used_bytes / layout.page_bytes(); }
  std::uint64_t cached() const { return pools.figures().cached_bytes / layout.page_bytes(); }
  std::uint64_t free() const { return pools.figures().free_bytes / layout.page_bytes(); }
};

}  // namespace tessera::tests
