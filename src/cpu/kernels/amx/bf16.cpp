// Family bf16, weights that are bf16: their panels are B tiles as they lie. Few rows stream them.
#include "cpu/kernels/amx/bf16_panels.hpp"
#include "cpu/kernels/amx/products.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace {

void linear(const LinearJob& job) noexcept {
  linear_bf16<1, PackedForm::bf16>(job, [](const std::byte* from, std::size_t, std::byte*) {
    return TileRun{from, kTileBytes};
  });
}

}  // namespace

void add_bf16(Kernels& kernels) noexcept {
  add_bf16<1>(kernels, Family::bf16, PackedForm::bf16, linear, "tiles of bf16");
}

}  // namespace tessera::cpu::TESSERA_ISA
