// The functions by which the sources of this directory add their kernels to the table of the instruction set (Kernels).
#pragma once

#include "cpu/kernels.hpp"

namespace tessera::cpu::TESSERA_ISA {

void add_elementwise(Kernels& kernels) noexcept;
void add_recurrent(Kernels& kernels) noexcept;
void add_low_rank(Kernels& kernels) noexcept;
void add_preparation(Kernels& kernels) noexcept;
void add_attention(Kernels& kernels) noexcept;
void add_linear_f32(Kernels& kernels) noexcept;
void add_linear_int8_32(Kernels& kernels) noexcept;
void add_linear_int8_256(Kernels& kernels) noexcept;
void add_linear_kept(Kernels& kernels) noexcept;
void add_linear_bf16(Kernels& kernels) noexcept;
void add_linear_bf16_pairs(Kernels& kernels) noexcept;

void add_kernels(Kernels& kernels) noexcept;

}  // namespace tessera::cpu::TESSERA_ISA
