// The functions of cuBLASLt that tessera calls. The library is loaded at run time, when an engine is made (driver_api.hpp).
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include <tessera/core/result.hpp>

#define TESSERA_BLAS_FUNCTIONS(X)         \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetVersion)                   \
  X(cublasLtGetStatusString)              \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)

namespace tessera::cuda {

struct BlasApi {
#define TESSERA_MEMBER(name) decltype(&::name) name = nullptr;
  TESSERA_BLAS_FUNCTIONS(TESSERA_MEMBER)
#undef TESSERA_MEMBER
};

// Loads the library at `path`. If `path` is empty, loads cuBLASLt 13, or else 12, from where the system's loader finds it.
Result<std::shared_ptr<const BlasApi>> load_blas_api(const std::string& path);

}  // namespace tessera::cuda
