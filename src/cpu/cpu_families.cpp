// Chooses the family (the order of arithmetic, which decides the bits) of each product (docs/reference/numerics.md). By default:
// quantised weights have the same family on every machine. 16-bit weights, and keys and values of less than 32 bits, get the family that
// is fastest on this machine. Exception: if all machines must give the same bits, they get the family that machines with AMX's tile
// registers use.
#include "cpu/cpu_backend.hpp"
#include "cpu/products/rounded_rows.hpp"

namespace tessera::cpu {

bool CpuBackend::as_tiles() const noexcept {
  return kernels_.has_tiles || numerics_ == Numerics::bf16 || numerics_ == Numerics::invariant;
}

Family CpuBackend::unrounded_family_of(PackedForm form, std::size_t rows) const noexcept {
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
             !formats::keeps_blocks(form)) {  // kept forms have only tile kernels that multiply integers
    family = Family::bf16;
  }
  return has(family) ? family : Family::reference;
}

// Returns the family of a matrix's products. Most models do not round a matrix's inputs: then unrounded_family_of() decides.
//
// If the model rounds the inputs to 8 bits (InputRounding), the library must round nothing else between one rounding of the model and the
// next. The reason: the next rounding hides an error that is smaller than half the distance of neighbouring rounded numbers, but turns a
// larger error into this whole distance. So rows are multiplied in int8 only if the model's rounded numbers are integers times a scale
// that whole blocks share, because then the kernels multiply exactly the model's integers. Otherwise rows are multiplied in f32. For
// quantised weights, only the portable reference kernels compute in f32.
Family CpuBackend::family_of(const Matrix& weight, std::size_t rows) const noexcept {
  if (weight.rounding.to == RoundedInputs::none || numerics_ == Numerics::reference) return unrounded_family_of(weight.form, rows);
  const auto has = [&](Family family) { return kernels_.product(family, weight.form).few.run != nullptr; };
  if (enters_int8(weight.rounding, input_form(Family::int8, weight.form)) && has(Family::int8)) return Family::int8;
  return has(Family::f32) ? Family::f32 : Family::reference;
}

Family CpuBackend::attention_family_of(KvType type) const noexcept {
  if (numerics_ == Numerics::reference) return Family::reference;
  if (type == KvType::f32) return Family::f32;
  const auto has = [&](Family family) { return kernels_.attend(family, type).run != nullptr; };
  const Family bf16 = has(Family::bf16_pairs) && !as_tiles() ? Family::bf16_pairs : Family::bf16;
  if (type != KvType::f16) return bf16;
  // Rounding F16 keys to bf16 is faster but adds an error: a tenth of the error of 8-bit products, but far more than the error of f32 or
  // bf16x3 products. So keys are rounded only if all weights are quantised.
  if (numerics_ == Numerics::fastest && weights_.all_quantised() && has(bf16)) return bf16;
  return as_tiles() ? Family::bf16x3 : Family::f32;
}

}  // namespace tessera::cpu
