// Which instruction sets this machine runs, and the kernels of one. Decided once, when an engine is made.
#pragma once

#include <string>
#include <vector>

#include <tessera/core/instruction_set.hpp>
#include <tessera/core/result.hpp>

#include "cpu/kernels.hpp"

namespace tessera::cpu {

// A set that the library has kernels for. `why_not` says what is missing here; empty if the machine runs it.
struct Support {
  InstructionSet set;
  std::string why_not;
};

// All sets of this architecture, worst first. Asks the system for tiles the first time that the machine has them:
// threads made later, and those there are, may then use them (Linux, Documentation/arch/x86/xstate.rst).
[[nodiscard]] std::vector<Support> supported_sets();

// `wanted`, or the best there is. An error if the machine does not run it.
[[nodiscard]] Result<InstructionSet> choose_set(InstructionSet wanted);

// The table of a set that the machine runs.
[[nodiscard]] Kernels kernels_of(InstructionSet set) noexcept;

}  // namespace tessera::cpu
