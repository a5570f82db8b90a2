// Replaces kernels in the table of avx512_vnni by kernels for the tile unit, where these are faster.
#include "cpu/kernels/amx/products.hpp"

namespace tessera::cpu::TESSERA_ISA {

void add_kernels(Kernels& kernels) noexcept;

void add_kernels(Kernels& kernels) noexcept {
  kernels.has_tiles = true;
  add_bf16(kernels);
  add_bf16_quantised(kernels);
  add_bf16x3(kernels);
  add_attention(kernels);
  add_int8_block256(kernels);
  add_int8_block32(kernels);
}

}  // namespace tessera::cpu::TESSERA_ISA
