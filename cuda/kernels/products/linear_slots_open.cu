// Products of slots with weights whose blocks are opened.
#include "cuda/kernels/products/linear_slots_body.hpp"

namespace tessera::cuda {

TESSERA_LINEAR_SLOTS(open)
TESSERA_LINEAR_SLOTS(open_min)

}  // namespace tessera::cuda
