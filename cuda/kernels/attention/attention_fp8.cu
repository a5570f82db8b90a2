#include "cuda/kernels/attention/attention_tile.hpp"

namespace tessera::cuda {

TESSERA_ATTENTION_KERNELS(fp8, kv::Fp8)

}  // namespace tessera::cuda
