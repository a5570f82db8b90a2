// Finds the instruction sets that this machine runs, and the kernels of a set. Decided once, when an engine is made.
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

// Returns all sets of this architecture, worst first. Asks the system for nothing.
[[nodiscard]] std::vector<Support> supported_sets();

// Returns `wanted`, or for automatic the best set. Error: the machine does not run the set.
[[nodiscard]] Result<InstructionSet> choose_set(InstructionSet wanted);

// The set that an engine will run on. `refused`: the reason why a better set of the CPU was not taken; empty if there is none.
struct ClaimedSet {
  InstructionSet set;
  std::string refused;
};

// Does what choose_set() does. For amx also asks the system for tiles (Linux, Documentation/arch/x86/xstate.rst), for the whole
// process: all present and later threads, whose signal frames grow by 8 KB. If the system refuses, automatic takes the next best
// set.
[[nodiscard]] Result<ClaimedSet> claim_set(InstructionSet wanted);

// Does the same among `sets`. ask_for_tiles() returns whether the system gives tiles.
[[nodiscard]] Result<ClaimedSet> claim_among(std::span<const Support> sets, InstructionSet wanted, bool (*ask_for_tiles)());

// Returns the kernels of a set that the machine runs.
[[nodiscard]] Kernels kernels_of(InstructionSet set) noexcept;

}  // namespace tessera::cpu
