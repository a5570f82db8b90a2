// Products of slots with weights that are plain numbers.
#include "cuda/kernels/products/linear_slots_body.hpp"

namespace tessera::cuda {

TESSERA_LINEAR_SLOTS(f32)
TESSERA_LINEAR_SLOTS(f16)
TESSERA_LINEAR_SLOTS(bf16)

}  // namespace tessera::cuda
