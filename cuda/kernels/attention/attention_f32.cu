#include "cuda/kernels/attention/attention_tile.hpp"

namespace tessera::cuda {

TESSERA_ATTENTION_KERNELS(f32, kv::F32)
TESSERA_LATENT_ATTENTION(f32, kv::F32)

}  // namespace tessera::cuda
