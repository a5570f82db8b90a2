// Products of slots with weights that are blocks of 32.
#include "cuda/kernels/products/linear_slots_body.hpp"

namespace tessera::cuda {

TESSERA_LINEAR_SLOTS(block32_4)
TESSERA_LINEAR_SLOTS(block32_4_min)
TESSERA_LINEAR_SLOTS(block32_5)
TESSERA_LINEAR_SLOTS(block32_5_min)
TESSERA_LINEAR_SLOTS(block32_8)

}  // namespace tessera::cuda
