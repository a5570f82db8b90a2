// Matrix products of family reference-f32, with which the other families are compared: plain code at baseline flags, for every packed
// form. out[m][n] is one chain of additions over k, ascending from 0. Each product is rounded to f32 and then added (no FMA).
#pragma once

#include "cpu/kernels.hpp"

namespace tessera::cpu {

void add_reference_kernels(Kernels& kernels) noexcept;

}  // namespace tessera::cpu
