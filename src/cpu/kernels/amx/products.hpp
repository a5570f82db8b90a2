// The functions by which the files of this directory add their kernels (products and attention with AMX) to the table of kernels.
#pragma once

#include "cpu/kernels.hpp"

namespace tessera::cpu::TESSERA_ISA {

void add_bf16(Kernels& kernels) noexcept;
void add_bf16_quantised(Kernels& kernels) noexcept;
void add_bf16x3(Kernels& kernels) noexcept;
void add_attention(Kernels& kernels) noexcept;
void add_int8_block256(Kernels& kernels) noexcept;
void add_int8_block32(Kernels& kernels) noexcept;

}  // namespace tessera::cpu::TESSERA_ISA
