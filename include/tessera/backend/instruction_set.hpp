// The sets of CPU instructions for which the library has kernels. An engine takes the best set that the machine can run, unless
// EngineOptions::instruction_set names another one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

enum class InstructionSet : std::int32_t {
  automatic = 0,    // as an option: the best set that the machine runs
  baseline = 1,     // x86-64-v2 (SSE4.2); FMA in software
  avx2 = 2,         // AVX2, FMA, F16C
  avx2_vnni = 3,    // avx2 and AVX-VNNI
  avx512 = 4,       // AVX-512 F, BW, VL, DQ
  avx512_vnni = 5,  // avx512 and VNNI, BF16
  amx = 6,          // avx512_vnni and AMX tiles of int8 and bf16
  neon = 7,         // ARMv8
  neon_dotprod = 8  // neon and dotprod
};

inline constexpr InstructionSet kInstructionSets[] = {
    InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx2_vnni, InstructionSet::avx512,
    InstructionSet::avx512_vnni, InstructionSet::amx, InstructionSet::neon, InstructionSet::neon_dotprod};

[[nodiscard]] constexpr std::string_view to_string(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::automatic: return "auto";
    case InstructionSet::baseline: return "baseline";
    case InstructionSet::avx2: return "avx2";
    case InstructionSet::avx2_vnni: return "avx2-vnni";
    case InstructionSet::avx512: return "avx512";
    case InstructionSet::avx512_vnni: return "avx512-vnni";
    case InstructionSet::amx: return "amx";
    case InstructionSet::neon: return "neon";
    case InstructionSet::neon_dotprod: return "neon-dotprod";
  }
  return "?";
}

// Returns the set of this name ("auto" included), or nullopt.
[[nodiscard]] constexpr std::optional<InstructionSet> parse_instruction_set(std::string_view name) noexcept {
  if (name == "auto") return InstructionSet::automatic;
  for (const InstructionSet set : kInstructionSets) {
    if (name == to_string(set)) return set;
  }
  return std::nullopt;
}

}  // namespace tessera
