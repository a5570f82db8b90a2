#include "cuda/make_backend.hpp"

#include "core/error.hpp"
#include "cuda/cuda_backend.hpp"

namespace tessera::cuda {

namespace {

Status check(Numerics numerics) {
  if (numerics == Numerics::automatic || numerics == Numerics::fastest || numerics == Numerics::invariant) return {};
  return detail::make_error(ErrorCode::unsupported,
                            "the cuda backend has no numerics \"{}\"; choose auto, fastest or invariant",
                            to_string(numerics));
}

}  // namespace

Result<std::unique_ptr<backend::Backend>> make_backend(const CudaOptions& options, Numerics numerics, Memory& host) {
  TESSERA_TRY_STATUS(check(numerics));
  auto backend = std::make_unique<CudaBackend>(numerics, host);
  TESSERA_TRY_STATUS(backend->open(options));
  return std::unique_ptr<backend::Backend>(std::move(backend));
}

Result<std::unique_ptr<backend::Backend>> make_planner(Numerics numerics, Memory& host) {
  TESSERA_TRY_STATUS(check(numerics));
  return std::unique_ptr<backend::Backend>(std::make_unique<CudaBackend>(numerics, host));
}

}  // namespace tessera::cuda
