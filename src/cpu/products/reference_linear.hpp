// Matrix products of family reference-f32: out[m][n] is one chain over k, ascending from 0. Each product is rounded to f32 and then added
// (no FMA). Plain code at baseline flags, for every packed form. This family is the reference for the other families.
#pragma once

#include "cpu/kernels.hpp"

namespace tessera::cpu {

void add_reference_kernels(Kernels& kernels) noexcept;

}  // namespace tessera::cpu
