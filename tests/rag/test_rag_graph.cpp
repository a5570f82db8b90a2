// The file of the graph of vectors: what was written is read, and no damaged or forged file is.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "catch.hpp"
#include "store/graph_bytes.hpp"

namespace test_rag_graph {

using namespace rag;

namespace {

constexpr std::size_t kCount = 300, kWidth = 8;
constexpr std::size_t kHead = 32;

struct Made {
  hnswlib::InnerProductSpace space{kWidth};
  std::vector<float> values = std::vector<float>(kCount * kWidth);
  Links links{&space, kCount, 16, 100};
  std::filesystem::path file = std::filesystem::temp_directory_path() / ("tessera-graph-" + std::to_string(::getpid()));
  GraphHash hash{};
  std::string bytes{};

  Made() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::ranges::generate(values, [&] { return normal(random); });
    for (std::size_t i = 0; i < kCount; ++i) links.addPoint(values.data() + i * kWidth, i + 1000);
    hash = write_graph(file, links);
    std::ifstream stream(file, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(stream), {});
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() { std::filesystem::remove(file); }

  // Reads the bytes as a file; with their own hash if `is_forged`.
  [[nodiscard]] bool reads(const std::string& changed, bool is_forged = true) {
    std::ofstream(file, std::ios::binary) << changed;
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(changed.data(), changed.size()));
    GraphHash own = hash;
    if (is_forged) std::memcpy(own.data(), canonical.digest, own.size());
    Links other(&space, kCount, 16, 100);
    if (!read_graph(file, own, kCount, other)) return false;
    (void)other.searchKnn(values.data(), 5);  // must read nothing outside of the graph, which a sanitizer sees
    return true;
  }
  template <class T>
  [[nodiscard]] std::string with(std::size_t at, T value) const {
    std::string changed = bytes;
    std::memcpy(changed.data() + at, &value, sizeof value);
    return changed;
  }
};

}  // namespace

TEST_CASE("a graph that was read finds the same vectors as the graph that was written") {
  Made made;
  Links other(&made.space, kCount, 16, 100);
  REQUIRE(read_graph(made.file, made.hash, kCount, other));
  for (std::size_t i = 0; i < 20; ++i) {
    auto a = made.links.searchKnn(made.values.data() + i * kWidth, 5), b = other.searchKnn(made.values.data() + i * kWidth, 5);
    REQUIRE(a.size() == b.size());
    for (; !a.empty(); a.pop(), b.pop()) CHECK(a.top() == b.top());
  }
  CHECK(made.reads(made.bytes, false));
  Links fewer(&made.space, kCount - 1, 16, 100);
  CHECK_FALSE(read_graph(made.file, made.hash, kCount - 1, fewer));
  CHECK_FALSE(read_graph(made.file.string() + ".none", made.hash, kCount, fewer));
}

TEST_CASE("a damaged graph is not read: each byte counts") {
  Made made;
  for (std::size_t at = 0; at < made.bytes.size(); at += 997) {
    std::string changed = made.bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK_FALSE(made.reads(changed, false));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, kHead, made.bytes.size() / 2, made.bytes.size() - 1}) {
    CHECK_FALSE(made.reads(made.bytes.substr(0, size), false));
  }
  CHECK_FALSE(made.reads(made.bytes + "x", false));
}

TEST_CASE("a forged graph, with the right hash, makes no search read outside of it") {
  Made made;
  CHECK(made.reads(made.bytes));
  const std::size_t levels = kHead + kCount * made.links.size_data_per_element_;  // the first vector's level
  CHECK_FALSE(made.reads(made.with(8, std::uint64_t{kCount + 1})));              // more vectors
  CHECK_FALSE(made.reads(made.with(16, std::uint64_t{1} << 62)));                // larger ones
  CHECK_FALSE(made.reads(made.with(24, std::int32_t{60})));                      // a level that no vector has
  CHECK_FALSE(made.reads(made.with(24, std::int32_t{-1})));
  CHECK_FALSE(made.reads(made.with(28, std::uint32_t{kCount})));                 // a search would begin outside
  CHECK_FALSE(made.reads(made.with(kHead, std::uint32_t{33})));                  // more links than a list has room for
  CHECK_FALSE(made.reads(made.with(kHead, std::uint32_t{0x10001})));             // a removed vector
  CHECK_FALSE(made.reads(made.with(kHead + 4, std::uint32_t{kCount})));          // a link to no vector
  CHECK_FALSE(made.reads(made.with(kHead + 4, ~std::uint32_t{0})));
  CHECK_FALSE(made.reads(made.with(levels, ~std::uint32_t{0})));                 // as many levels as there is no memory for
  int refused = 0;
  for (std::size_t at = levels; at + 4 <= made.bytes.size(); at += 4) {          // links and levels above level 0; those without use are read
    refused += made.reads(made.with(at, std::uint32_t{0x7fffffff})) ? 0 : 1;
  }
  CHECK(refused > static_cast<int>(kCount));
}

}  // namespace test_rag_graph
