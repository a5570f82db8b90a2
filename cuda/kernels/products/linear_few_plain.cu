// Products of few rows with weights that are plain numbers.
#include "cuda/kernels/products/linear_few_body.hpp"

namespace tessera::cuda {

TESSERA_LINEAR_FEW(f32)
TESSERA_LINEAR_FEW(f16)
TESSERA_LINEAR_FEW(bf16)

}  // namespace tessera::cuda
