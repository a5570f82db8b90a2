// Matrix products of family bf16 with AMX, for weights in BF16. The panels of such weights already have the layout of B tiles (tiles.hpp), so
// no weight is decoded. With few rows each weight is read once, in the order of the addresses (bf16_panels.hpp).
#include "cpu/kernels/amx/bf16_panels.hpp"
#include "cpu/kernels/amx/products.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace bf16 {
namespace {

void linear(const LinearJob& job) noexcept {
  linear_bf16<1, PackedForm::bf16>(job, [](const std::byte* from, std::size_t, std::byte*) {
    return TileRun{from, kTileBytes};
  });
}

}  // namespace
}  // namespace bf16

void add_bf16(Kernels& kernels) noexcept {
  using namespace bf16;
  add_bf16<1>(kernels, Family::bf16, PackedForm::bf16, linear, "tiles of bf16");
}

}  // namespace tessera::cpu::TESSERA_ISA
