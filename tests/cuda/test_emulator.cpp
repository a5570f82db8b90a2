// The emulator of the CUDA tests: threads wait for each other as on a GPU, and what would hang or be garbage there is
// an error here.
#include <emulator/launch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "cuda/kernels/device.hpp"

namespace test_emulator {

using namespace tessera::cuda;  // NOLINT: as kernels have it
using tessera::emulator::Grid;
using tessera::emulator::launch;

namespace {

struct Sums {
  const float* in;  // [gridDim.x, blockDim.x]
  float* out;       // [gridDim.x]
};

struct Words {
  std::uint32_t* out;  // [blocks, threads], or what the kernel says
  std::uint32_t n;
};

struct Wide {
  std::uint64_t* out;
};

}  // namespace

TESSERA_KERNEL(test_block_sums, 1024, Sums) {
  TESSERA_SHARED float warps[32];
  const float sum = warp_sum(args.in[blockIdx.x * blockDim.x + threadIdx.x]);
  if (lane_id() == 0) warps[warp_id()] = sum;
  sync_block();
  if (threadIdx.x == 0) {
    float total = 0;
    for (unsigned w = 0; w < blockDim.x / kWarp; ++w) total += warps[w];
    args.out[blockIdx.x] = total;
  }
}

TESSERA_KERNEL(test_places, 64, Words) {
  const std::uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  args.out[block * blockDim.x + threadIdx.x] = block << 8 | threadIdx.x;
}

// Every thread passes a number to its right-hand neighbour, args.n times.
TESSERA_KERNEL(test_ring, 1024, Words) {
  auto* const shared = static_cast<std::uint32_t*>(dynamic_shared());
  shared[threadIdx.x] = threadIdx.x;
  for (std::uint32_t i = 0; i < args.n; ++i) {
    sync_block();
    const std::uint32_t left = shared[(threadIdx.x + blockDim.x - 1) % blockDim.x];
    sync_block();
    shared[threadIdx.x] = left;
  }
  args.out[threadIdx.x] = shared[threadIdx.x];
}

TESSERA_KERNEL(test_ring_without_barriers, 1024, Words) {
  auto* const shared = static_cast<std::uint32_t*>(dynamic_shared());
  shared[threadIdx.x] = threadIdx.x;
  args.out[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}

// [5, threads]
TESSERA_KERNEL(test_lanes, 256, Words) {
  const auto value = static_cast<std::uint32_t>(threadIdx.x * 10);
  std::uint32_t* const out = args.out + threadIdx.x;
  out[0] = shuffle_xor(value, 5);
  out[blockDim.x] = shuffle(value, 7);
  out[2 * blockDim.x] = shuffle_up(value, 3);
  out[3 * blockDim.x] = ballot(threadIdx.x % 3 == 0);
  sync_warp();
  out[4 * blockDim.x] = static_cast<std::uint32_t>(shuffle(std::uint64_t{value} << 32, 1) >> 32);
}

TESSERA_KERNEL(test_atomics, 128, Wide) {
  const std::uint64_t at = blockIdx.x * blockDim.x + threadIdx.x;
  atomic_add(&args.out[0], at);
  atomic_max(&args.out[1], at * 7919 % 1000);
  args.out[2 + atomic_add(reinterpret_cast<std::uint32_t*>(&args.out[2 + 128 * gridDim.x]), 1)] = at;
}

TESSERA_KERNEL(test_some_leave, 64, Words) {
  if (threadIdx.x >= args.n) return;
  sync_block();
}
TESSERA_KERNEL(test_diverged, 64, Words) {
  if (lane_id() < args.n) {
    sync_warp();
  } else {
    shuffle_xor(args.n, 1);
  }
}
TESSERA_KERNEL(test_warp_and_block, 64, Words) {
  if (threadIdx.x == args.n) {
    sync_warp();
  } else {
    sync_block();
  }
}
TESSERA_KERNEL(test_shared_bytes, 32, Words) {
  auto* const shared = static_cast<unsigned char*>(dynamic_shared());
  std::uint32_t nans = 0;
  for (std::uint32_t i = 0; i < 64; ++i) nans += shared[i] == 0xff;
  args.out[blockIdx.x] = nans;
  for (std::uint32_t i = 0; i < args.n; ++i) shared[i] = 1;
}
TESSERA_KERNEL(test_last_block, 32, Words) { *args.out = blockIdx.x; }
TESSERA_KERNEL(test_unaligned, 32, Words) {
  args.out[0] = load_streaming(reinterpret_cast<const unsigned char*>(args.out) + args.n).x;
}

namespace {

std::string error_of(const char* kernel, Grid grid, unsigned threads, std::size_t shared, const auto& args) {
  try {
    launch(kernel, grid, threads, shared, args);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return {};
}

struct InOrder {
  explicit InOrder(std::uint64_t seed) { tessera::emulator::set_order(seed); }
  ~InOrder() { tessera::emulator::set_order(0); }
};

}  // namespace

TEST_CASE("threads find their places in a grid of three dimensions") {
  const std::uint64_t seed = GENERATE(0, 1, 2, 3, 99);
  const InOrder order(seed);
  const Grid grid = GENERATE(Grid{1, 1, 1}, Grid{5, 1, 1}, Grid{3, 4, 2}, Grid{7, 3, 5});
  const std::size_t n = std::size_t{grid.x} * grid.y * grid.z * 48;
  std::vector<std::uint32_t> out(n, 0xffffffff);
  launch("test_places", grid, 48, 0, Words{out.data(), 0});
  for (std::size_t i = 0; i < n; ++i) REQUIRE(out[i] == (i / 48 << 8 | i % 48));
}

TEST_CASE("a sum over a block, by shuffles and shared memory") {
  const InOrder order(GENERATE(0, 1, 2, 7));
  for (const unsigned threads : {32u, 64u, 256u, 1024u}) {
    std::vector<float> in(3 * threads), out(3);
    std::iota(in.begin(), in.end(), 1.0f);
    launch("test_block_sums", {3}, threads, 0, Sums{in.data(), out.data()});
    for (unsigned b = 0; b < 3; ++b) {
      float sum = 0;
      for (unsigned i = 0; i < threads; ++i) sum += in[b * threads + i];
      CHECK(out[b] == sum);  // small whole numbers: exact
    }
  }
}

TEST_CASE("barriers keep the threads of a block together") {
  const InOrder order(GENERATE(0, 1, 2, 7));
  for (const unsigned threads : {1u, 2u, 33u, 100u, 1024u}) {
    std::vector<std::uint32_t> out(threads);
    launch("test_ring", {}, threads, threads * 4, Words{out.data(), 5});
    for (unsigned i = 0; i < threads; ++i) REQUIRE(out[i] == (i + 5 * threads - 5) % threads);
  }
}

TEST_CASE("a missing barrier changes the result with the order") {
  std::vector<std::vector<std::uint32_t>> results;
  for (const std::uint64_t seed : {0, 1, 2}) {
    const InOrder order(seed);
    std::vector<std::uint32_t> out(128);
    launch("test_ring_without_barriers", {}, 128, 128 * 4, Words{out.data(), 0});
    results.push_back(out);
  }
  CHECK(results[0] != results[1]);
  CHECK(results[1] != results[2]);
}

TEST_CASE("what lanes give each other") {
  const InOrder order(GENERATE(0, 1, 5));
  const unsigned n = 96;
  std::vector<std::uint32_t> out(5 * n);
  launch("test_lanes", {}, n, 0, Words{out.data(), 0});
  for (unsigned i = 0; i < n; ++i) {
    const unsigned warp = i / 32 * 32, lane = i % 32;
    CHECK(out[i] == (warp + (lane ^ 5)) * 10);
    CHECK(out[n + i] == (warp + 7) * 10);
    CHECK(out[2 * n + i] == (lane < 3 ? i : i - 3) * 10);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32; ++l) bits |= static_cast<unsigned>((warp + l) % 3 == 0) << l;
    CHECK(out[3 * n + i] == bits);
    CHECK(out[4 * n + i] == (warp + 1) * 10);
  }
}

TEST_CASE("atomics over blocks") {
  const InOrder order(GENERATE(0, 1, 5));
  std::vector<std::uint64_t> out(2 + 128 * 4 + 1);
  launch("test_atomics", {4}, 128, 0, Wide{out.data()});
  CHECK(out[0] == 512u * 511 / 2);
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < 512; ++i) most = std::max(most, i * 7919 % 1000);
  CHECK(out[1] == most);
  CHECK(out.back() == 512);
  std::sort(out.begin() + 2, out.end() - 1);
  for (std::uint64_t i = 0; i < 512; ++i) REQUIRE(out[2 + i] == i);
}

TEST_CASE("threads that wait for ever are an error, and the next launch works") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(error_of("test_some_leave", {}, 64, 0, Words{nullptr, 40}),
             ContainsSubstring("40 threads wait in sync_block, 24 have left"));
  CHECK(error_of("test_some_leave", {}, 64, 0, Words{nullptr, 64}).empty());
  CHECK_THAT(error_of("test_diverged", {}, 64, 0, Words{nullptr, 3}),
             ContainsSubstring("shuffle_xor while other lanes of its warp are in sync_warp"));
  CHECK(error_of("test_diverged", {}, 64, 0, Words{nullptr, 32}).empty());
  CHECK_THAT(error_of("test_warp_and_block", {}, 64, 0, Words{nullptr, 33}),
             ContainsSubstring("1 lanes of warp 1 wait in sync_warp, 63 threads wait in sync_block"));
  // A warp of 3 lanes: they wait for each other only, and a lane that is not there gives nothing.
  std::vector<std::uint32_t> out(1024);
  CHECK(error_of("test_diverged", {}, 3, 0, Words{out.data(), 32}).empty());
  CHECK_THAT(error_of("test_lanes", {}, 3, 0, Words{out.data(), 0}), ContainsSubstring("which its warp does not have"));
}

TEST_CASE("what cannot be launched") {
  using Catch::Matchers::ContainsSubstring;
  std::uint32_t word = 0;
  const Words args{&word, 0};
  CHECK_THAT(error_of("test_nothing", {}, 32, 0, args), ContainsSubstring("no kernel is called test_nothing"));
  CHECK_THAT(error_of("test_some_leave", {}, 32, 0, Wide{}), ContainsSubstring("takes arguments of 16 bytes, not 8"));
  CHECK_THAT(error_of("test_some_leave", {}, 65, 0, args), ContainsSubstring("at most 64 threads, not 65"));
  CHECK_THAT(error_of("test_some_leave", {}, 0, 0, args), ContainsSubstring("at most 64 threads, not 0"));
  CHECK_THAT(error_of("test_some_leave", {1, 0, 1}, 1, 0, args), ContainsSubstring("no block"));
}

TEST_CASE("dynamic shared memory is fresh for each block and ends where it ends") {
  std::vector<std::uint32_t> nans(3);
  launch("test_shared_bytes", {3}, 1, 64, Words{nans.data(), 64});
  CHECK(nans == std::vector<std::uint32_t>{64, 64, 64});
#if !defined(__SANITIZE_ADDRESS__)  // which ends the program
  CHECK_THAT(error_of("test_shared_bytes", {}, 1, 64, Words{nans.data(), 65}),
             Catch::Matchers::ContainsSubstring("writes beyond its 64 bytes"));
#endif
}

TEST_CASE("a streaming load that is not aligned is an error") {
  alignas(16) std::uint32_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  launch("test_unaligned", {}, 1, 0, Words{words, 16});
  CHECK(words[0] == 5);
  CHECK_THAT(error_of("test_unaligned", {}, 1, 0, Words{words, 8}),
             Catch::Matchers::ContainsSubstring("multiple of 16"));
}

TEST_CASE("blocks run in the order that is asked for") {
  std::vector<std::uint32_t> last;
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    const InOrder order(seed);
    std::uint32_t block = 0;
    launch("test_last_block", {100}, 1, 0, Words{&block, 0});
    last.push_back(block);
  }
  CHECK(last[0] == 99);
  CHECK(last[1] == 0);
  CHECK((last[2] != last[3] || last[3] != last[4]));
}

TEST_CASE("launches on several threads at once") {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::uint32_t>> results(3);
  for (auto& out : results) {
    threads.emplace_back([&out] {
      out.resize(256);
      for (int i = 0; i < 20; ++i) launch("test_ring", {}, 256, 1024, Words{out.data(), 3});
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& out : results) {
    for (unsigned i = 0; i < 256; ++i) REQUIRE(out[i] == (i + 253) % 256);
  }
}

}  // namespace test_emulator
