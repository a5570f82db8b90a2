// Kernels that measure how fast memory can be read in order. There are three ways of reading, because it depends on the machine's hardware
// prefetchers which way is fastest; all three are measured. They are written with GCC's vector extensions, which compile for every target.
#include <array>

#include "measure/limits.hpp"

namespace tessera::bench {

namespace {

using CacheLine = std::uint64_t __attribute__((vector_size(64), may_alias));

// Reads all bytes: in each round four cache lines, each of which is added to an accumulator of its own. `Ahead`: how many bytes beyond its
// reads the function prefetches; 0: it leaves prefetching to the hardware. `Locality`: to which cache it prefetches, an argument of
// __builtin_prefetch (3: the first level, 2: the second).
template <std::size_t Ahead, int Locality>
[[gnu::always_inline]] inline std::uint64_t read(const std::byte* bytes, std::size_t count) noexcept {
  constexpr std::size_t kLines = 4, kRound = kLines * sizeof(CacheLine);
  CacheLine sum[kLines] = {};
  for (const std::byte* from = bytes; from < bytes + count; from += kRound) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kLines; ++i) {
      if constexpr (Ahead != 0) __builtin_prefetch(from + Ahead + i * sizeof(CacheLine), 0, Locality);
      sum[i] += reinterpret_cast<const CacheLine*>(from)[i];
    }
  }
  const CacheLine all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < 8; ++i) result += all[i];
  __asm__ volatile("" : : "r"(result));
  return result;
}

// The same three ways for processors with vectors of 64 bytes (AVX-512). With 64 bytes a vector, reading a cache line takes fewer
// instructions, so more reads are in flight at a time.
#if defined(__x86_64__)
#define TESSERA_BENCH_WIDE __attribute__((target("avx512f")))
bool has_wide() noexcept { return __builtin_cpu_supports("avx512f"); }
#else
#define TESSERA_BENCH_WIDE
bool has_wide() noexcept { return false; }
#endif

std::uint64_t plain(const std::byte* bytes, std::size_t count) noexcept { return read<0, 0>(bytes, count); }
std::uint64_t prefetched(const std::byte* bytes, std::size_t count) noexcept { return read<4096, 3>(bytes, count); }
std::uint64_t prefetched_far(const std::byte* bytes, std::size_t count) noexcept {
  return read<16384, 2>(bytes, count);
}

TESSERA_BENCH_WIDE std::uint64_t wide_plain(const std::byte* bytes, std::size_t count) noexcept {
  return read<0, 0>(bytes, count);
}
TESSERA_BENCH_WIDE std::uint64_t wide_prefetched(const std::byte* bytes, std::size_t count) noexcept {
  return read<4096, 3>(bytes, count);
}
TESSERA_BENCH_WIDE std::uint64_t wide_prefetched_far(const std::byte* bytes, std::size_t count) noexcept {
  return read<16384, 2>(bytes, count);
}

constexpr std::array<ReadKernel, 3> kKernels = {
    {{"plain", plain}, {"prefetched", prefetched}, {"prefetched far", prefetched_far}}};
constexpr std::array<ReadKernel, 3> kWideKernels = {
    {{"plain", wide_plain}, {"prefetched", wide_prefetched}, {"prefetched far", wide_prefetched_far}}};

}  // namespace

std::span<const ReadKernel> read_kernels() noexcept {
  static const bool wide = has_wide();
  return wide ? kWideKernels : kKernels;
}

}  // namespace tessera::bench
