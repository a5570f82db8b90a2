// This instruction set's part of the table of kernels. Each source of this directory that has kernels adds its own.
#include "cpu/kernels.hpp"

namespace tessera::cpu::TESSERA_ISA {

void add_kernels(Kernels& kernels) noexcept;

void add_kernels(Kernels& kernels) noexcept { static_cast<void>(kernels); }

}  // namespace tessera::cpu::TESSERA_ISA
