// Stands in for the CUDA backend in builds without a CUDA toolkit: its functions return an error.
#include "cuda/make_backend.hpp"

#include "core/error.hpp"

namespace tessera::cuda {

namespace {

Error absent() {
  return detail::make_error(ErrorCode::unsupported,
                            "this build has no CUDA backend (it was made without a CUDA toolkit, or with TESSERA_CUDA=OFF); "
                            "choose the cpu backend");
}

}  // namespace

Result<std::unique_ptr<backend::Backend>> make_backend(const CudaOptions&, Numerics, Memory&) { return absent(); }
Result<std::unique_ptr<backend::Backend>> make_planner(Numerics, Memory&) { return absent(); }

}  // namespace tessera::cuda
