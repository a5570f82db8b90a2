// Products of slots with weights that are superblocks of 256.
#include "cuda/kernels/products/linear_slots_body.hpp"

namespace tessera::cuda {

TESSERA_LINEAR_SLOTS(block256_4)
TESSERA_LINEAR_SLOTS(block256_5)
TESSERA_LINEAR_SLOTS(block256_6)

}  // namespace tessera::cuda
