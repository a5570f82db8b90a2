// Which instruction sets this machine runs, and the kernels of one. Decided once, when an engine is made.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tessera/backend/instruction_set.hpp>
#include <tessera/core/result.hpp>

#include "cpu/kernels.hpp"

namespace tessera::cpu {

// An instruction set. `why_not` says what is missing here; empty if the machine runs it and this build has its kernels.
struct Support {
  InstructionSet set;
  std::string why_not;
};

// Whether this build has kernels for the set (cmake/TesseraKernels.cmake: TESSERA_KERNEL_SETS).
[[nodiscard]] bool has_kernels(InstructionSet set) noexcept;

// All sets of this architecture, worst first. Looks, and changes nothing.
[[nodiscard]] std::vector<Support> supported_sets();

// `wanted`, or the best there is. An error if the machine does not run it.
[[nodiscard]] Result<InstructionSet> choose_set(InstructionSet wanted);

// The set that an engine will run on, and why a better one that the CPU has was not taken, empty if none was.
struct ClaimedSet {
  InstructionSet set;
  std::string refused;
};

// As choose_set; and if it is amx, asks the system for tiles (Linux, Documentation/arch/x86/xstate.rst): for the whole
// process, threads there are and threads to come, whose signal frames grow by 8 KB. Where the system refuses, automatic
// is the next best set.
[[nodiscard]] Result<ClaimedSet> claim_set(InstructionSet wanted);

// The same among these sets, where `ask_for_tiles` says whether the system gives them.
[[nodiscard]] Result<ClaimedSet> claim_among(std::span<const Support> sets, InstructionSet wanted, bool (*ask_for_tiles)());

// The table of a set that the machine runs.
[[nodiscard]] Kernels kernels_of(InstructionSet set) noexcept;

}  // namespace tessera::cpu
