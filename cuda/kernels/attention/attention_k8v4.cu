#include "cuda/kernels/attention/attention_tile.hpp"

namespace tessera::cuda {

TESSERA_ATTENTION_KERNELS(k8v4, K8V4)

}  // namespace tessera::cuda
