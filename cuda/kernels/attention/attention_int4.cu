#include "cuda/kernels/attention/attention_tile.hpp"

namespace tessera::cuda {

TESSERA_ATTENTION_KERNELS(int4, kv::Int4)

}  // namespace tessera::cuda
