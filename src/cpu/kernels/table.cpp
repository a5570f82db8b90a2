// Fills the table of kernels for this instruction set.
#include "cpu/kernels/parts.hpp"

namespace tessera::cpu::TESSERA_ISA {

void add_kernels(Kernels& kernels) noexcept {
  add_elementwise(kernels);
  add_recurrent(kernels);
  add_low_rank(kernels);
  add_preparation(kernels);
  add_attention(kernels);
  add_linear_f32(kernels);
  add_linear_int8_32(kernels);
  add_linear_int8_256(kernels);
  add_linear_kept(kernels);
  add_linear_bf16(kernels);
  add_linear_bf16_pairs(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
