// Linked into a test whose engines shall run set amx also where tests/cpu/tile_emulator.hpp has to stand in: the linker
// (--wrap, tests/CMakeLists.txt) sends the engine's two questions about sets here. `automatic` stays what the CPU is best at.
#include "cpu/instruction_sets.hpp"
#include "cpu/tile_emulator.hpp"

#define TESSERA_CHOOSE "_ZN7tessera3cpu10choose_setENS_14InstructionSetE"
#define TESSERA_CLAIM "_ZN7tessera3cpu9claim_setENS_14InstructionSetE"

namespace tessera::test {

Result<InstructionSet> real_choose(InstructionSet wanted) asm("__real_" TESSERA_CHOOSE);
Result<cpu::ClaimedSet> real_claim(InstructionSet wanted) asm("__real_" TESSERA_CLAIM);
Result<InstructionSet> choose(InstructionSet wanted) asm("__wrap_" TESSERA_CHOOSE);
Result<cpu::ClaimedSet> claim(InstructionSet wanted) asm("__wrap_" TESSERA_CLAIM);

Result<InstructionSet> choose(InstructionSet wanted) {
  if (emulated(wanted)) return wanted;
  return real_choose(wanted);
}

Result<cpu::ClaimedSet> claim(InstructionSet wanted) {
  if (emulated(wanted)) return cpu::ClaimedSet{wanted, ""};
  return real_claim(wanted);
}

}  // namespace tessera::test
