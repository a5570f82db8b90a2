// Products of few rows with weights whose blocks are opened.
#include "cuda/kernels/products/linear_few_body.hpp"

namespace tessera::cuda {

TESSERA_LINEAR_FEW(open)
TESSERA_LINEAR_FEW(open_min)

}  // namespace tessera::cuda
