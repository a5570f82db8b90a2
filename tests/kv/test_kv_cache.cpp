// The KV cache as an object: growth page by page, truncation, copies, checksums, errors that change nothing.
#include <cstring>
#include <random>
#include <vector>

#include <tessera/kv/kv_cache.hpp>

#include "catch.hpp"
#include "cpu/attention/write_kv.hpp"

namespace test_kv_cache {

using namespace tessera;

namespace {

const KvLayerShape kShapes[] = {{2, 8, 6}, {1, 10, 4}};  // layers may differ

KvCache make_cache(DType dtype, std::uint64_t capacity, std::uint32_t page_tokens = 32) {
  auto layout = make_kv_layout(kShapes, dtype, page_tokens);
  REQUIRE(layout);
  auto cache = KvCache::contiguous(*std::move(layout), {.capacity = capacity}, system_memory());
  REQUIRE(cache);
  return *std::move(cache);
}

// Grows the cache by `n` tokens of values that follow from `seed` and the position.
void grow(KvCache& cache, std::uint64_t n, std::uint32_t seed) {
  REQUIRE(cache.reserve(cache.length() + n));
  for (std::uint64_t position = cache.length(); position < cache.length() + n; ++position) {
    std::mt19937 random(static_cast<std::uint32_t>(seed + 31 * position));
    float row[16];
    for (std::size_t layer = 0; layer < 2; ++layer) {
      for (std::size_t head = 0; head < kShapes[layer].kv_heads; ++head) {
        for (float& x : row) x = static_cast<float>(random() % 1000) / 100.0f;
        cpu::write_kv(cache.view(), layer, head, position, row, row);
      }
    }
  }
  cache.commit(cache.length() + n);
}

}  // namespace

TEST_CASE("memory is committed page by page and given back", "[kv]") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    KvCache cache = make_cache(dtype, 10000);
    CHECK(cache.bytes() == 0);
    const std::uint64_t per_token = (2 * (8 + 6) + 10 + 4) * (dtype == DType::f32 ? 4u : 2u);
    CHECK(cache.layout().bytes_per_token() == per_token);
    std::uint64_t most = 0;
    for (int i = 0; i < 200; ++i) {
      grow(cache, 7, 1);
      const std::uint64_t pages = (cache.length() + 31) / 32 * 32 * per_token;
      CHECK(cache.bytes() >= pages);
      CHECK(cache.bytes() < pages + 4096);
      most = std::max(most, cache.bytes());
    }
    cache.truncate(100);
    CHECK(cache.length() == 100);
    CHECK(cache.bytes() < 128 * per_token + 4096);
    cache.truncate(5000);  // beyond the end: nothing
    CHECK(cache.length() == 100);
    cache.clear();
    CHECK(cache.bytes() == 0);
    grow(cache, 40, 2);
    CHECK(cache.length() == 40);
  }
}

TEST_CASE("a checksum depends on contents and layer, not on page size", "[kv]") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    KvCache small = make_cache(dtype, 500, 32);
    KvCache large = make_cache(dtype, 500, 64);
    grow(small, 100, 1);
    grow(large, 100, 1);
    for (std::size_t layer = 0; layer < 2; ++layer) CHECK(small.checksum(layer) == large.checksum(layer));
    CHECK(small.checksum(0) != small.checksum(1));
    CHECK(small.checksum(7) == 0);

    const auto before = small.checksum(1);
    std::byte* key = small.view().k_block(1, 0, 2) + small.view().slot_of(70) * (dtype == DType::f32 ? 4u : 2u);
    *key ^= std::byte{1};
    CHECK(small.checksum(1) != before);
    CHECK(small.checksum(0) == large.checksum(0));
    *key ^= std::byte{1};
    CHECK(small.checksum(1) == before);
    small.truncate(99);
    CHECK(small.checksum(1) != before);
  }
}

TEST_CASE("a clone is equal and independent", "[kv]") {
  KvCache cache = make_cache(DType::f16, 300);
  grow(cache, 77, 3);
  auto clone = cache.clone();
  REQUIRE(clone);
  CHECK(clone->length() == 77);
  CHECK(clone->checksum(0) == cache.checksum(0));
  const auto before = cache.checksum(0);
  grow(*clone, 10, 9);
  CHECK(cache.checksum(0) == before);
  cache.clear();
  CHECK(clone->length() == 87);
  auto empty = make_cache(DType::f32, 10).clone();
  REQUIRE(empty);
  CHECK(empty->length() == 0);
}

TEST_CASE("committing more than was reserved commits what was reserved", "[kv]") {
  KvCache cache = make_cache(DType::f32, 500);
  cache.commit(100);
  CHECK(cache.length() == 0);
  REQUIRE(cache.reserve(33));
  cache.commit(400);
  CHECK(cache.length() >= 33);
  CHECK(cache.length() < 128);  // whole pages of 32, and what the granularity rounds up to
  (void)cache.checksum(0);
  CHECK(cache.clone());
}

TEST_CASE("what cannot be done is an error and changes nothing", "[kv]") {
  KvCache cache = make_cache(DType::f32, 50);
  grow(cache, 50, 1);
  const auto full = cache.reserve(51);
  REQUIRE(!full);
  CHECK(full.error().code() == ErrorCode::cache_full);
  CHECK(cache.length() == 50);

  CHECK(make_kv_layout(kShapes, DType::q4_0).error().code() == ErrorCode::unsupported);
  CHECK(make_kv_layout(kShapes, DType::f32, 33).error().code() == ErrorCode::invalid_argument);
  const KvLayerShape huge[] = {{0xffffffffu, 0xffffffffu, 0xffffffffu}};
  CHECK(!make_kv_layout(huge, DType::f32));
  auto layout = make_kv_layout(kShapes, DType::f32);
  REQUIRE(layout);
  CHECK(!KvCache::contiguous(*layout, {.capacity = 0}, system_memory()));
  CHECK(!KvCache::contiguous(*layout, {.capacity = ~std::uint64_t{0} / 2}, system_memory()));
}

TEST_CASE("a removal of tokens that the cache does not hold is an error and changes nothing", "[kv]") {
  KvCache cache = make_cache(DType::f32, 50);
  grow(cache, 40, 1);
  const std::uint64_t most = ~std::uint64_t{0};
  const std::uint64_t wrong[][3] = {{5, 2, 1},       {0, 41, 1},      {0, 5, 6},    {0, 40, 99},
                                    {0, most, most}, {most, most, 0}, {2, most, 40}};
  for (const auto& [first, end, tokens] : wrong) {
    CAPTURE(first, end, tokens);
    CHECK(cache.begin_removal(first, end, tokens).error().code() == ErrorCode::invalid_argument);
    CHECK_FALSE(cache.edited());
  }
  for (const KvRemoval& removal : {KvRemoval{99, {0}}, KvRemoval{1, {}}, KvRemoval{1, {0, 0, 0}}, KvRemoval{5, {3}},
                                   KvRemoval{5, {41}}, KvRemoval{most, {most}}}) {
    cache.end_removal(removal);
    CHECK(cache.length() == 40);
    CHECK(cache.first() == 0);
  }
  const auto removal = cache.begin_removal(3, 8, 5);
  REQUIRE(removal);
  cache.end_removal(*removal);
  CHECK(cache.length() == 35);
}

TEST_CASE("layers without anything to hold are refused, and moved-from caches are errors", "[kv]") {
  for (const KvLayerShape shape : {KvLayerShape{0, 8, 8}, KvLayerShape{1, 0, 8}, KvLayerShape{1, 8, 0}}) {
    CHECK(make_kv_layout({&shape, 1}, DType::f16).error().code() == ErrorCode::invalid_argument);
  }
  KvCache cache = make_cache(DType::f32, 64);
  const KvCache taken = std::move(cache);
  CHECK(cache.reserve(1).error().code() == ErrorCode::invalid_state);
  CHECK(cache.edit(0).error().code() == ErrorCode::invalid_state);
  CHECK(cache.suspend().error().code() == ErrorCode::invalid_state);
  CHECK(cache.clone().error().code() == ErrorCode::invalid_state);
  CHECK(cache.fork().error().code() == ErrorCode::invalid_state);
  KvCache empty = make_cache(DType::f32, 64);
  CHECK(cache.convert_to(empty).error().code() == ErrorCode::invalid_state);
  CHECK(taken.convert_to(cache).error().code() == ErrorCode::invalid_state);
}

}  // namespace test_kv_cache
