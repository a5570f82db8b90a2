// Lets a run of the tests choose the instruction set of engines that leave the choice to the library, so that a machine
// with AMX also runs what a machine without it runs. TESSERA_TEST_INSTRUCTIONS=avx2 makes `automatic` avx2 for the
// whole program. The linker (--wrap, tests/CMakeLists.txt) sends the engine's two questions about sets here; the
// library itself reads no environment. test_main.cpp skips the program where the machine does not run the set.
#include "forced_set.hpp"

#include <cstdlib>

#include "cpu/instruction_sets.hpp"

#define TESSERA_CHOOSE "_ZN7tessera3cpu10choose_setENS_14InstructionSetE"
#define TESSERA_CLAIM "_ZN7tessera3cpu9claim_setENS_14InstructionSetE"

namespace tessera::tests {

Result<InstructionSet> real_choose(InstructionSet wanted) asm("__real_" TESSERA_CHOOSE);
Result<cpu::ClaimedSet> real_claim(InstructionSet wanted) asm("__real_" TESSERA_CLAIM);
Result<InstructionSet> choose(InstructionSet wanted) asm("__wrap_" TESSERA_CHOOSE);
Result<cpu::ClaimedSet> claim(InstructionSet wanted) asm("__wrap_" TESSERA_CLAIM);

namespace {

InstructionSet instead_of(InstructionSet wanted) {
  const char* forced = std::getenv(kForcedSetVariable);
  if (forced == nullptr || wanted != InstructionSet::automatic) return wanted;
  return parse_instruction_set(forced).value_or(wanted);
}

}  // namespace

Result<InstructionSet> choose(InstructionSet wanted) { return real_choose(instead_of(wanted)); }

Result<cpu::ClaimedSet> claim(InstructionSet wanted) { return real_claim(instead_of(wanted)); }

}  // namespace tessera::tests
