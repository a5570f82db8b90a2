// Products of few rows with weights that are blocks of 32.
#include "cuda/kernels/products/linear_few_body.hpp"

namespace tessera::cuda {

TESSERA_LINEAR_FEW(block32_4)
TESSERA_LINEAR_FEW(block32_4_min)
TESSERA_LINEAR_FEW(block32_5)
TESSERA_LINEAR_FEW(block32_5_min)
TESSERA_LINEAR_FEW(block32_8)

}  // namespace tessera::cuda
