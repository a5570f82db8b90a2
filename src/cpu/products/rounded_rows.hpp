// Prepares rows for matrices whose model's files ask for rounded activations. First a row is rounded as the files say (InputRounding),
// then it is converted to the form of its product (prepared_rows.hpp). The formulas are in docs/reference/numerics.md, "Rounded inputs".
// Plain code: every instruction set gives the same bits.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cpu/kernels.hpp"
#include "cpu/products/packed_matrix.hpp"

namespace tessera::cpu {

// Returns whether rounded rows are integers times a scale that whole blocks share, so that the family int8 multiplies exactly these integers.
[[nodiscard]] bool enters_int8(const InputRounding& how, InputForm form) noexcept;

// Returns the rounding of a matrix's inputs; nullptr: there is none.
[[nodiscard]] inline const InputRounding* rounding_of(const backend::Matrix& weight) noexcept {
  return weight.rounding.to != RoundedInputs::none ? &weight.rounding : nullptr;
}

// Returns a rounding's name for explain(), such as "int8-token"; empty if there is none.
[[nodiscard]] std::string name_of(const InputRounding& how);

// Rounds the row `x` for matrix `matrix` of a weight: out[i] is the rounded number. `out` may be `x`.
void round_row(const InputRounding& how, std::size_t matrix, std::span<const float> x, float* out) noexcept;

// Rounds the row `x`, and writes it in `form` to `out`, in a group of `group` rows (PrepareFn). `matrix`: index of the matrix, if the
// weight has several with their own scales. `prepare`: the kernel that writes `form`. `scratch`: memory for the rounded row  [x.size()]; may
// be `x` itself.
void prepare_rounded(const InputRounding& how, std::size_t matrix, PrepareFn prepare, std::span<const float> x, float* scratch, InputForm form,
                     std::byte* out, std::size_t group) noexcept;

}  // namespace tessera::cpu
