#include "cuda/kernels/attention/attention_tile.hpp"

namespace tessera::cuda {

TESSERA_ATTENTION_KERNELS(f16, kv::F16)
TESSERA_LATENT_ATTENTION(f16, kv::F16)

}  // namespace tessera::cuda
