#include "cpu/instruction_sets.hpp"

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include "core/error.hpp"
#include "cpu/products/reference_linear.hpp"
#include "os/processors.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tessera::cpu {

#if defined(__x86_64__)
namespace baseline { void add_kernels(Kernels& kernels) noexcept; }
namespace avx2 { void add_kernels(Kernels& kernels) noexcept; }
namespace avx2_vnni { void add_kernels(Kernels& kernels) noexcept; }
namespace avx512 { void add_kernels(Kernels& kernels) noexcept; }
namespace avx512_vnni { void add_kernels(Kernels& kernels) noexcept; }
namespace amx { void add_kernels(Kernels& kernels) noexcept; }
#elif defined(__aarch64__)
namespace neon { void add_kernels(Kernels& kernels) noexcept; }
namespace neon_dotprod { void add_kernels(Kernels& kernels) noexcept; }
#endif

namespace {

#if defined(__x86_64__)

struct Leaf {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

Leaf cpuid(std::uint32_t leaf, std::uint32_t subleaf) noexcept {
  Leaf r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

constexpr bool bit(std::uint32_t word, unsigned i) noexcept { return (word >> i & 1u) != 0; }

// Returns the register states that the system saves (XCR0; Intel SDM volume 1, 13.3).
std::uint64_t saved_states() noexcept {
  if (!bit(cpuid(1, 0).c, 27)) return 0;  // OSXSAVE
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

// Returns the CPU family of an AMD CPU; 0 for other makers.
std::uint32_t amd_family() noexcept {
  const Leaf vendor = cpuid(0, 0);
  const bool is_amd = vendor.b == 0x68747541 && vendor.d == 0x69746e65 && vendor.c == 0x444d4163;  // AuthenticAMD
  const std::uint32_t signature = cpuid(1, 0).a;
  return is_amd ? (signature >> 8 & 0xfu) + (signature >> 20 & 0xffu) : 0;
}
constexpr std::uint32_t kZen5 = 0x1a;

// Returns whether the CPU counts as one that computes two 512-bit products a cycle: true on AMD CPUs from Zen 5 on, false on all others.
// Some mobile CPUs of Zen 5 compute only one, and get true too; what this costs has not been measured.
bool two_wide_products_here() noexcept { return amd_family() >= kZen5; }

// Returns how kernels for few rows prefetch weights on this CPU. Measured by bench/by_turns (docs/explanation/kernels.md, "Reading weights").
Ahead ahead_of_this_cpu() noexcept {
  const std::uint32_t family = amd_family();
  if (family == 0) return {.bytes = 2048, .all_lines = true};  // on Intel with AMX, 3 KB took 1.01 to 1.07 times as long
  // Zen 4: the hardware prefetchers alone read weights at nearly the speed of memory. A kernel that prefetches every line disturbs them: one
  // row of Q8_0 took 0.7 of the time when the kernel prefetched nothing. Prefetching about every fourth line keeps the hardware prefetchers
  // further ahead. Zen 5: the hardware prefetchers fail in superblocks, so every line is prefetched. With every fourth line, one row of Q4_K
  // took twice as long.
  return family < kZen5 ? Ahead{.bytes = 4096, .all_lines = false} : Ahead{.bytes = 6144, .all_lines = true};
}

std::string missing(std::initializer_list<std::pair<const char*, bool>> features) {
  std::vector<const char*> names;
  for (const auto& [name, has] : features) {
    if (!has) names.push_back(name);
  }
  return names.empty() ? std::string() : fmt::format("the CPU has no {}", fmt::join(names, ", "));
}

std::vector<Support> detect() {
  constexpr std::uint64_t kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000;
  const std::uint64_t states = saved_states();
  const auto saved = [states](std::uint64_t mask) { return (states & mask) == mask; };
  const Leaf one = cpuid(1, 0), seven = cpuid(7, 0), seven_one = cpuid(7, 1);
  const auto add = [](const std::string& why, const std::string& more) {
    return why.empty() ? more : more.empty() ? why : fmt::format("{}; {}", why, more);
  };

  std::string avx2 = missing({{"AVX2", bit(seven.b, 5)}, {"FMA", bit(one.c, 12)}, {"F16C", bit(one.c, 29)}});
  if (avx2.empty() && !saved(kYmm)) avx2 = "the system does not save AVX registers";
  std::string avx512 = add(avx2, missing({{"AVX512F", bit(seven.b, 16)}, {"AVX512BW", bit(seven.b, 30)},
                                          {"AVX512VL", bit(seven.b, 31)}, {"AVX512DQ", bit(seven.b, 17)}}));
  if (avx512.empty() && !saved(kZmm)) avx512 = "the system does not save AVX-512 registers";
  const std::string vnni = add(avx512, missing({{"AVX512_VNNI", bit(seven.c, 11)}, {"AVX512_BF16", bit(seven_one.a, 5)},
                                               {"AVX512_VBMI", bit(seven.c, 1)}}));
  std::string amx = add(vnni, missing({{"AMX_TILE", bit(seven.d, 24)}, {"AMX_INT8", bit(seven.d, 25)},
                                       {"AMX_BF16", bit(seven.d, 22)}}));
  if (amx.empty() && !saved(kTiles)) amx = "the system does not save tile registers";
  if (amx.empty() && !os::knows_tiles()) amx = "the system gives no tile registers to processes";
  return {{InstructionSet::baseline, ""},
          {InstructionSet::avx2, avx2},
          {InstructionSet::avx2_vnni, add(avx2, missing({{"AVX_VNNI", bit(seven_one.a, 4)}}))},
          {InstructionSet::avx512, avx512},
          {InstructionSet::avx512_vnni, vnni},
          {InstructionSet::amx, amx}};
}

#elif defined(__aarch64__)

Ahead ahead_of_this_cpu() noexcept { return {}; }
bool two_wide_products_here() noexcept { return false; }

std::vector<Support> detect() {
  const bool dotprod = os::has_dot_products();
  return {{InstructionSet::neon, ""}, {InstructionSet::neon_dotprod, dotprod ? "" : "the CPU has no dotprod"}};
}

#endif

}  // namespace

std::vector<Support> supported_sets() {
  std::vector<Support> sets = detect();
  for (Support& support : sets) {
    if (support.why_not.empty() && !has_kernels(support.set)) support.why_not = "this build has no kernels for it";
  }
  return sets;
}

Result<ClaimedSet> claim_among(std::span<const Support> sets, InstructionSet wanted, bool (*ask)()) {
  ClaimedSet claimed{InstructionSet::automatic, ""};
  std::string why_not = "it is of another kind of CPU";
  std::vector<std::string_view> usable;
  for (auto support = sets.rbegin(); support != sets.rend(); ++support) {  // best first; the last one runs on every CPU
    std::string why = support->why_not;
    const bool is_candidate = wanted == InstructionSet::automatic ? claimed.set == wanted : support->set == wanted;
    if (is_candidate && why.empty() && support->set == InstructionSet::amx && !ask()) {
      why = claimed.refused = "the CPU has AMX, but the system refuses tile registers to this process";
    }
    if (is_candidate && why.empty()) claimed.set = support->set;
    if (support->set == wanted) why_not = why;
    if (why.empty()) usable.insert(usable.begin(), to_string(support->set));
  }
  if (claimed.set != InstructionSet::automatic) return claimed;
  return detail::make_error(ErrorCode::unsupported, "instruction set {} cannot run here: {}. Choose auto or one of {}",
                            to_string(wanted), why_not, fmt::join(usable, ", "));
}

Result<InstructionSet> choose_set(InstructionSet wanted) {
  TESSERA_TRY(const ClaimedSet chosen, claim_among(supported_sets(), wanted, [] { return true; }));
  return chosen.set;
}

Result<ClaimedSet> claim_set(InstructionSet wanted) {
  return claim_among(supported_sets(), wanted, [] { return os::ask_for_tiles(); });
}

Kernels kernels_of(InstructionSet set) noexcept {
  Kernels kernels;
  add_reference_kernels(kernels);
  kernels.ahead = ahead_of_this_cpu();
  kernels.two_wide_products = two_wide_products_here();
  switch (set) {
#if defined(__x86_64__)
    case InstructionSet::avx2: avx2::add_kernels(kernels); break;
    case InstructionSet::avx2_vnni: avx2_vnni::add_kernels(kernels); break;
    case InstructionSet::avx512: avx512::add_kernels(kernels); break;
    case InstructionSet::avx512_vnni: avx512_vnni::add_kernels(kernels); break;
    case InstructionSet::amx:
      avx512_vnni::add_kernels(kernels);
      amx::add_kernels(kernels);
      break;
    default: baseline::add_kernels(kernels); break;
#elif defined(__aarch64__)
    case InstructionSet::neon_dotprod: neon_dotprod::add_kernels(kernels); break;
    default: neon::add_kernels(kernels); break;
#endif
  }
  return kernels;
}

}  // namespace tessera::cpu
