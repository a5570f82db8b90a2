// The tables of kernels that this machine can run, for tests that compare them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cpu/kernels.hpp"

#define TESSERA_DECLARE_KERNELS(set)          \
  namespace tessera::cpu::set {               \
  void add_kernels(Kernels& kernels) noexcept; \
  }
#if defined(__x86_64__)
TESSERA_DECLARE_KERNELS(baseline)
TESSERA_DECLARE_KERNELS(avx2)
TESSERA_DECLARE_KERNELS(avx2_vnni)
TESSERA_DECLARE_KERNELS(avx512)
TESSERA_DECLARE_KERNELS(avx512_vnni)
#else
#include <sys/auxv.h>
TESSERA_DECLARE_KERNELS(neon)
TESSERA_DECLARE_KERNELS(neon_dotprod)
#endif
#undef TESSERA_DECLARE_KERNELS

namespace tessera::test {

struct Table {
  std::string set;
  cpu::Kernels kernels;
};

// The sets that do not run here are named in `missing`, each with the reason.
inline std::vector<Table> tables_that_run(std::vector<std::string>& missing) {
  std::vector<Table> tables;
  const auto add = [&](const char* set, bool runs, void (*add_kernels)(cpu::Kernels&) noexcept) {
    Table table{set, {}};
    if (runs) add_kernels(table.kernels);
    if (table.kernels.elementwise.rms_norm == nullptr) {
      missing.push_back(table.set + (runs ? ": this build has no kernels for it" : ": this machine lacks it"));
      return;
    }
    tables.push_back(std::move(table));
  };
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __asm__("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(7), "c"(1));
  const bool avx_vnni = (eax & 16u) != 0, bf16 = (eax & 32u) != 0;
  add("baseline", true, cpu::baseline::add_kernels);
  add("avx2", avx2, cpu::avx2::add_kernels);
  add("avx2_vnni", avx2 && avx_vnni, cpu::avx2_vnni::add_kernels);
  add("avx512", avx512, cpu::avx512::add_kernels);
  const bool vnni = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
  add("avx512_vnni", avx512 && bf16 && vnni, cpu::avx512_vnni::add_kernels);
#else
  add("neon", true, cpu::neon::add_kernels);
  add("neon_dotprod", (getauxval(AT_HWCAP) & (1ul << 20)) != 0, cpu::neon_dotprod::add_kernels);
#endif
  return tables;
}

}  // namespace tessera::test
