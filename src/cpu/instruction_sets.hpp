// Finds the instruction sets that this machine runs, and the kernels of a set. An engine's set is chosen once, when the engine is made.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tessera/backend/instruction_set.hpp>
#include <tessera/core/result.hpp>

#include "cpu/kernels.hpp"

namespace tessera::cpu {

// An instruction set. `why_not`: what is missing; empty if the machine runs the set and this build has its kernels.
struct Support {
  InstructionSet set;
  std::string why_not;
};

// Returns whether this build has kernels for the set (cmake/TesseraKernels.cmake: TESSERA_KERNEL_SETS).
[[nodiscard]] bool has_kernels(InstructionSet set) noexcept;

// Returns all instruction sets of this architecture, worst first. Does not ask the system for permission to use AMX; claim_set() does.
[[nodiscard]] std::vector<Support> supported_sets();

// Returns `wanted`; if that is automatic, the best set that the machine runs. Error: the machine does not run `wanted`.
[[nodiscard]] Result<InstructionSet> choose_set(InstructionSet wanted);

// The set that an engine will run on. `refused`: the reason why a better set of the CPU was not taken; empty if there is none.
struct ClaimedSet {
  InstructionSet set;
  std::string refused;
};

// Chooses a set like choose_set(). If the choice is amx, also asks the system for permission to use tile registers (Linux,
// Documentation/arch/x86/xstate.rst). The permission is for the whole process: the signal frames of all present and later threads grow by
// 8 KB. If the system refuses and `wanted` is automatic, takes the next best set.
[[nodiscard]] Result<ClaimedSet> claim_set(InstructionSet wanted);

// Chooses a set like claim_set(), with `sets` as the sets of the machine. ask_for_tiles() returns whether the system gives tile registers.
[[nodiscard]] Result<ClaimedSet> claim_among(std::span<const Support> sets, InstructionSet wanted, bool (*ask_for_tiles)());

// Returns the kernels of a set that the machine runs.
[[nodiscard]] Kernels kernels_of(InstructionSet set) noexcept;

}  // namespace tessera::cpu
