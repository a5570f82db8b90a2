#include "cuda/kernels/attention/attention_tile.hpp"

namespace tessera::cuda {

TESSERA_ATTENTION_KERNELS(bf16, kv::BF16)
TESSERA_LATENT_ATTENTION(bf16, kv::BF16)

}  // namespace tessera::cuda
