#include "cuda/kernels/attention_tile.hpp"

namespace tessera::cuda {

TESSERA_ATTENTION_KERNELS(f16, kv::F16)

}  // namespace tessera::cuda
