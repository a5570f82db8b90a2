// Products of few rows with weights that are superblocks of 256.
#include "cuda/kernels/products/linear_few_body.hpp"

namespace tessera::cuda {

TESSERA_LINEAR_FEW(block256_4)
TESSERA_LINEAR_FEW(block256_5)
TESSERA_LINEAR_FEW(block256_6)

}  // namespace tessera::cuda
