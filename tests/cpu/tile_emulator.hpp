// The tile unit of AMX in software, for CPUs that have all that its kernels use besides: an instruction that the CPU
// does not know raises SIGILL, whose handler does what the Intel SDM (volume 2, "Intel AMX instructions") says of it.
// So the kernels' own machine code is tested, where no such CPU is at hand. What the unit would refuse (a shape that
// does not fit, a tile without configuration, one that is left configured) ends the process with a message.
//
// Some 1 us an instruction. Only for programs without a SIGILL handler of their own.
#pragma once

#include <cstdint>

#include <tessera/backend/instruction_set.hpp>

#include "cpu/instruction_sets.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#endif

namespace tessera::test {

enum class TileUnit : std::uint8_t { none, emulated, real };

#if defined(__x86_64__)

namespace tile_emulator {

struct Tile {
  alignas(64) std::uint8_t row[16][64];
};

struct Unit {
  bool configured = false;
  std::uint8_t rows[8] = {};
  std::uint16_t bytes[8] = {};
  Tile tile[8] = {};
};

inline thread_local Unit unit __attribute__((tls_model("initial-exec")));

[[noreturn]] inline void refuse(const char* what) {
  std::fprintf(stderr, "tile unit: %s\n", what);
  std::abort();
}

inline void must(bool holds, const char* what) {
  if (!holds) refuse(what);
}

// ---- One instruction: VEX with map 0F38, its registers and its address ----

struct Instruction {
  std::uint8_t opcode = 0, prefix = 0;  // 0 none, 1 66, 2 F3, 3 F2
  unsigned reg = 0, rm = 0, third = 0;
  bool memory = false;
  std::uint64_t base = 0, index_bytes = 0;  // an address is base + row * index_bytes, or their sum
  std::size_t size = 0;
};

inline std::uint64_t general(const mcontext_t& at, unsigned i) {
  constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uint64_t>(at.gregs[kOrder[i]]);
}

// False if it is none of ours.
inline bool decode(const mcontext_t& at, Instruction& out) {
  const auto* code = reinterpret_cast<const std::uint8_t*>(at.gregs[REG_RIP]);
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0) return false;  // three bytes, 0F38, W0, 128 bits
  const unsigned r = code[1] & 0x80 ? 0u : 8u, x = code[1] & 0x40 ? 0u : 8u, b = code[1] & 0x20 ? 0u : 8u;
  out.prefix = code[2] & 3;
  out.third = (~static_cast<unsigned>(code[2]) >> 3) & 15;
  out.opcode = code[3];
  const std::uint8_t modrm = code[4];
  out.reg = (modrm >> 3 & 7) | r;
  out.rm = modrm & 7;
  std::size_t size = 5;
  const unsigned mode = modrm >> 6;
  out.memory = mode != 3;
  if (out.memory) {
    bool has_base = true;
    unsigned base = out.rm | b;
    if (out.rm == 4) {
      const std::uint8_t sib = code[size++];
      base = (sib & 7) | b;
      has_base = mode != 0 || (sib & 7) != 5;
      const unsigned index = (sib >> 3 & 7) | x;
      if (index != 4) out.index_bytes = general(at, index) << (sib >> 6);
    }
    const bool relative = out.rm == 5 && mode == 0;  // to the next instruction
    std::int64_t offset = 0;
    if (mode == 1) offset = static_cast<std::int8_t>(code[size]), size += 1;
    if (mode == 2 || relative || !has_base) {
      std::int32_t wide = 0;
      std::memcpy(&wide, code + size, 4);
      offset = wide, size += 4;
    }
    out.base = static_cast<std::uint64_t>(offset);
    if (relative) out.base += reinterpret_cast<std::uint64_t>(code) + size;
    else if (has_base) out.base += general(at, base);
  }
  out.size = size;
  return true;
}

// ---- What instructions do ----

inline void configure(const std::uint8_t* from) {
  must(from[0] == 1 && from[1] == 0, "a configuration of another palette or start row");
  for (unsigned i = 2; i < 64; ++i) must((i >= 16 && i < 32) || (i >= 48 && i < 56) || from[i] == 0, "a reserved byte is not 0");
  must(!unit.configured, "configured a second time, not released between");
  for (unsigned i = 0; i < 8; ++i) {
    std::memcpy(&unit.bytes[i], from + 16 + 2 * i, 2);
    unit.rows[i] = from[48 + i];
    must(unit.bytes[i] <= 64 && unit.rows[i] <= 16, "a tile over 16 rows or 64 bytes a row");
    must((unit.bytes[i] == 0) == (unit.rows[i] == 0), "a tile with rows or columns, not both");
  }
  for (Tile& tile : unit.tile) std::memset(&tile, 0, sizeof tile);
  unit.configured = true;
}

inline Tile& tile(unsigned i) {
  must(unit.configured, "a tile is used that is not configured");
  must(i < 8 && unit.rows[i] != 0, "a tile is used that has no shape");
  return unit.tile[i];
}

inline void move(const Instruction& in, bool load) {
  Tile& of = tile(in.reg);
  for (unsigned i = 0; i < unit.rows[in.reg]; ++i) {
    auto* memory = reinterpret_cast<std::uint8_t*>(in.base + i * in.index_bytes);
    if (load) std::memcpy(of.row[i], memory, unit.bytes[in.reg]);
    else std::memcpy(memory, of.row[i], unit.bytes[in.reg]);
  }
}

// C [rows][16] += A [rows][k] * B [k][16], in parts of 4 bytes; `row(c, a, b, k, out)` does one row.
template <class Row>
inline void multiply(const Instruction& in, Row row) {
  const unsigned c = in.reg, a = in.rm, b = in.third;
  Tile& to = tile(c);
  const Tile &left = tile(a), &right = tile(b);
  must(c != a && c != b && a != b, "a product of a tile with itself");
  must(unit.bytes[a] % 4 == 0 && unit.bytes[b] % 4 == 0, "a product of parts of 4 bytes");
  must(unit.rows[a] == unit.rows[c] && unit.bytes[a] / 4 == unit.rows[b] && unit.bytes[b] == unit.bytes[c],
       "a product of tiles whose shapes do not fit");
  for (unsigned i = 0; i < unit.rows[c]; ++i) {
    Tile made{};
    row(to.row[i], left.row[i], right, unit.rows[b], made.row[0]);
    std::memcpy(to.row[i], made.row[0], unit.bytes[c]);
  }
}

template <bool kSignedA, bool kSignedB>
__attribute__((target("avx512f,avx512bw"))) inline void add_int8(const std::uint8_t* c, const std::uint8_t* a, const Tile& b,
                                                                 unsigned k, std::uint8_t* out) {
  const auto wide = [](std::uint8_t byte, bool is_signed) {
    return is_signed ? static_cast<std::int32_t>(static_cast<std::int8_t>(byte)) : static_cast<std::int32_t>(byte);
  };
  std::uint32_t sum[16];
  std::memcpy(sum, c, 64);
  for (unsigned i = 0; i < k; ++i) {
    for (unsigned j = 0; j < 4; ++j) {
      const std::int32_t left = wide(a[4 * i + j], kSignedA);
      for (unsigned n = 0; n < 16; ++n) {
        sum[n] += static_cast<std::uint32_t>(left * wide(b.row[i][4 * n + j], kSignedB));
      }
    }
  }
  std::memcpy(out, sum, 64);
}

// Even and odd k apart, then their sum (SDM, TDPBF16PS). The handler's control word flushes denormals.
__attribute__((target("avx512f,fma"))) inline void add_bf16(const std::uint8_t* c, const std::uint8_t* a, const Tile& b,
                                                            unsigned k, std::uint8_t* out) {
  const auto bf16 = [](const std::uint8_t* at) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at, 2);
    return __builtin_bit_cast(float, bits << 16);
  };
  float sums[2][16] = {}, acc[16];
  for (unsigned i = 0; i < k; ++i) {
    for (unsigned j = 0; j < 2; ++j) {
      const float left = bf16(a + 4 * i + 2 * j);
      for (unsigned n = 0; n < 16; ++n) {
        sums[j][n] = __builtin_fmaf(left, bf16(b.row[i] + 4 * n + 2 * j), sums[j][n]);
      }
    }
  }
  std::memcpy(acc, c, 64);
  for (unsigned n = 0; n < 16; ++n) acc[n] += sums[0][n] + sums[1][n];
  std::memcpy(out, acc, 64);
}

inline bool execute(const Instruction& in) {
  const unsigned what = in.opcode * 4u + in.prefix;
  constexpr unsigned k49 = 0x49 * 4, k4b = 0x4b * 4, k5c = 0x5c * 4, k5e = 0x5e * 4;
  if (in.memory) {
    switch (what) {
      case k49: configure(reinterpret_cast<const std::uint8_t*>(in.base + in.index_bytes)); return true;
      case k4b + 3:
      case k4b + 1: move(in, true); return true;
      case k4b + 2: move(in, false); return true;
      default: return false;
    }
  }
  switch (what) {
    case k49: unit.configured = false; return true;
    case k49 + 3: std::memset(&tile(in.reg), 0, sizeof(Tile)); return true;
    case k5c + 2: multiply(in, add_bf16); return true;
    case k5e + 3: multiply(in, add_int8<true, true>); return true;
    case k5e + 2: multiply(in, add_int8<true, false>); return true;
    case k5e + 1: multiply(in, add_int8<false, true>); return true;
    case k5e: multiply(in, add_int8<false, false>); return true;
    default: return false;
  }
}

inline void on_illegal_instruction(int, siginfo_t*, void* context) {
  auto& at = static_cast<ucontext_t*>(context)->uc_mcontext;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x1f80u | 0x8040u);  // nearest, no exceptions, denormals read and made are 0
  bool some = false;  // and those that follow at once: it is the signal that takes long
  for (Instruction in; decode(at, in) && execute(in); in = {}) {
    at.gregs[REG_RIP] += static_cast<greg_t>(in.size);
    some = true;
  }
  _mm_setcsr(before);
  if (!some) signal(SIGILL, SIG_DFL);  // somebody else's: it is met again
}

}  // namespace tile_emulator

// At the start of every test case that runs kernels of set amx, as Catch2 takes the signal itself at each.
inline TileUnit tile_unit() {
  if (!cpu::has_kernels(InstructionSet::amx)) return TileUnit::none;  // this build lacks them
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __asm__("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(7), "c"(1));
  const bool vnni = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
  if (!vnni || !__builtin_cpu_supports("avx512bw") || (eax & 32u) == 0) return TileUnit::none;
  __asm__("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(7), "c"(0));
  const bool has = (edx >> 22 & 1u) != 0 && (edx >> 24 & 3u) == 3;
  if (has) return syscall(SYS_arch_prctl, 0x1023, 18) == 0 ? TileUnit::real : TileUnit::none;  // TILERELEASE would not be ours
  struct sigaction action = {};
  action.sa_sigaction = tile_emulator::on_illegal_instruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, nullptr);
  return TileUnit::emulated;
}

#else

inline TileUnit tile_unit() { return TileUnit::none; }

#endif

// Whether `set` runs here because the tile unit is emulated.
inline bool emulated(InstructionSet set) { return set == InstructionSet::amx && tile_unit() == TileUnit::emulated; }

}  // namespace tessera::test
