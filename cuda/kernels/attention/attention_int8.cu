#include "cuda/kernels/attention/attention_tile.hpp"

namespace tessera::cuda {

TESSERA_ATTENTION_KERNELS(int8, kv::Int8)

}  // namespace tessera::cuda
