// Which family computes what (docs/numerics.md). Quantised weights have one on every machine; for 16-bit weights and for
// keys and values below 32 bits it is what the machine is fast at, unless every machine shall give the same: then as tiles do.
#include "cpu/cpu_backend.hpp"

namespace tessera::cpu {

bool CpuBackend::as_tiles() const noexcept {
  return kernels_.has_tiles || numerics_ == Numerics::bf16 || numerics_ == Numerics::invariant;
}

Family CpuBackend::family_of(PackedForm form, std::size_t rows) const noexcept {
  const auto has = [&](Family family) { return kernels_.product(family, form).few.run != nullptr; };
  Family family = Family::int8;
  if (numerics_ == Numerics::reference) {
    family = Family::reference;
  } else if (form == PackedForm::f32) {
    family = Family::f32;
  } else if (form == PackedForm::f16) {
    family = as_tiles() ? Family::bf16x3 : Family::f32;
  } else if (form == PackedForm::bf16) {
    family = as_tiles() ? Family::bf16 : has(Family::bf16_pairs) ? Family::bf16_pairs : Family::f32;
  } else if (numerics_ == Numerics::bf16) {
    family = Family::bf16;
  } else if (numerics_ == Numerics::fastest && kernels_.has_tiles && rows >= kFastestRows &&
             !formats::keeps_blocks(form)) {  // whose tiles are of integers
    family = Family::bf16;
  }
  return has(family) ? family : Family::reference;
}

Family CpuBackend::attention_family_of(KvType type) const noexcept {
  if (numerics_ == Numerics::reference) return Family::reference;
  if (type == KvType::f32) return Family::f32;
  const auto has = [&](Family family) { return kernels_.attend(family, type).run != nullptr; };
  const Family bf16 = has(Family::bf16_pairs) && !as_tiles() ? Family::bf16_pairs : Family::bf16;
  if (type != KvType::f16) return bf16;
  // What bf16 does not hold of F16 is a tenth of the error of products in 8 bits, but far more than that of f32's or bf16x3's.
  if (numerics_ == Numerics::fastest && all_quantised_ && has(bf16)) return bf16;
  return as_tiles() ? Family::bf16x3 : Family::f32;
}

}  // namespace tessera::cpu
