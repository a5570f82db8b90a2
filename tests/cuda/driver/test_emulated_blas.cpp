// Products of the emulated cuBLASLt against plain loops.
#include "core/float16.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "cuda/driver/blas_api.hpp"
#include "rig.hpp"

namespace test_emulated_blas {

using tessera::tests::Rig;

namespace {

struct Case {
  cudaDataType type;
  bool transpose_a, transpose_b;
  std::uint64_t m, n, k, padding;
  float alpha, beta;
};

float number(std::uint64_t i) { return static_cast<float>(static_cast<int>(i * 2654435761u % 61) - 30) / 8.0f; }

// Column-major [rows, columns] of `leading` rows; numbers that all types hold.
std::vector<unsigned char> matrix(cudaDataType type, std::uint64_t columns, std::uint64_t leading, std::uint64_t seed) {
  const std::size_t size = type == CUDA_R_32F ? 4 : 2;
  std::vector<unsigned char> bytes(columns * leading * size);
  for (std::uint64_t i = 0; i < columns * leading; ++i) {
    const float value = number(i + seed);
    const std::uint16_t half = type == CUDA_R_16F ? tessera::f32_to_f16(value) : tessera::f32_to_bf16(value);
    std::memcpy(&bytes[i * size], size == 4 ? static_cast<const void*>(&value) : &half, size);
  }
  return bytes;
}

struct Products {
  explicit Products(const Rig& of) : rig(of) { REQUIRE(blas.cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS); }
  ~Products() { CHECK(blas.cublasLtDestroy(handle) == CUBLAS_STATUS_SUCCESS); }

  CUdeviceptr upload(const std::vector<unsigned char>& bytes) const {
    const CUdeviceptr at = rig.device(bytes.size());
    REQUIRE(rig.api.cuMemcpyHtoDAsync(at, bytes.data(), bytes.size(), rig.stream) == CUDA_SUCCESS);
    return at;
  }

  // d [n][ldd], which held `before`
  std::vector<float> run(const Case& c) const {
    const std::uint64_t lda = (c.transpose_a ? c.k : c.m) + c.padding, ldb = (c.transpose_b ? c.n : c.k) + c.padding;
    const std::uint64_t ldd = c.m + c.padding;
    const CUdeviceptr a = upload(matrix(c.type, c.transpose_a ? c.m : c.k, lda, 1));
    const CUdeviceptr b = upload(matrix(c.type, c.transpose_b ? c.k : c.n, ldb, 2));
    const CUdeviceptr d = upload(matrix(CUDA_R_32F, c.n, ldd, 3));
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t la = nullptr, lb = nullptr, ld = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    REQUIRE(blas.cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
    const cublasOperation_t ta = c.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                            tb = c.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    REQUIRE(blas.cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta) == 0);
    REQUIRE(blas.cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb) == 0);
    const auto layout = [&](cublasLtMatrixLayout_t* at, cudaDataType type, bool transposed, std::uint64_t rows,
                            std::uint64_t columns, std::uint64_t leading) {
      REQUIRE(blas.cublasLtMatrixLayoutCreate(at, type, transposed ? columns : rows, transposed ? rows : columns,
                                              static_cast<std::int64_t>(leading)) == CUBLAS_STATUS_SUCCESS);
    };
    layout(&la, c.type, c.transpose_a, c.m, c.k, lda);
    layout(&lb, c.type, c.transpose_b, c.k, c.n, ldb);
    layout(&ld, CUDA_R_32F, false, c.m, c.n, ldd);
    REQUIRE(blas.cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS);
    const std::size_t most = 4096;
    REQUIRE(blas.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                                      sizeof most) == CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    REQUIRE(blas.cublasLtMatmulAlgoGetHeuristic(handle, product, la, lb, ld, ld, preference, 1, &best, &found) ==
            CUBLAS_STATUS_SUCCESS);
    REQUIRE(found == 1);
    REQUIRE(best.workspaceSize <= most);
    const CUdeviceptr workspace = rig.device(most);
    const auto matmul = [&](CUdeviceptr to, std::size_t workspace_bytes) {
      return blas.cublasLtMatmul(handle, product, &c.alpha, reinterpret_cast<void*>(a), la, reinterpret_cast<void*>(b),
                                 lb, &c.beta, reinterpret_cast<void*>(to), ld, reinterpret_cast<void*>(to), ld,
                                 &best.algo, reinterpret_cast<void*>(workspace), workspace_bytes, rig.stream);
    };
    CHECK(matmul(d, 16) == CUBLAS_STATUS_INVALID_VALUE);                        // too small a workspace
    CHECK(matmul(d + 4 + 4 * c.padding, most) == CUBLAS_STATUS_INVALID_VALUE);  // past the end
    REQUIRE(matmul(d, most) == CUBLAS_STATUS_SUCCESS);
    std::vector<float> result(c.n * ldd);
    REQUIRE(rig.api.cuMemcpyDtoHAsync(result.data(), d, result.size() * 4, rig.stream) == CUDA_SUCCESS);
    REQUIRE(rig.api.cuStreamSynchronize(rig.stream) == CUDA_SUCCESS);
    for (const CUdeviceptr at : {a, b, d, workspace}) CHECK(rig.api.cuMemFree(at) == CUDA_SUCCESS);
    for (const cublasLtMatrixLayout_t at : {la, lb, ld}) CHECK(blas.cublasLtMatrixLayoutDestroy(at) == 0);
    CHECK(blas.cublasLtMatmulDescDestroy(product) == CUBLAS_STATUS_SUCCESS);
    CHECK(blas.cublasLtMatmulPreferenceDestroy(preference) == CUBLAS_STATUS_SUCCESS);
    return result;
  }

  const Rig& rig;
  std::shared_ptr<const tessera::cuda::BlasApi> table = tessera::tests::emulated_blas();
  const tessera::cuda::BlasApi& blas = *table;
  cublasLtHandle_t handle = nullptr;
};

}  // namespace

TEST_CASE("products of all types, transposed or not, with padding") {
  const Rig rig;
  const Products products(rig);
  const cudaDataType type = GENERATE(CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF);
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  const Case c = GENERATE_COPY(Case{type, ta, tb, 1, 1, 1, 0, 1, 0}, Case{type, ta, tb, 7, 5, 33, 3, 1, 0},
                               Case{type, ta, tb, 20, 1, 100, 0, 0.5f, 2}, Case{type, ta, tb, 3, 17, 64, 1, 2, 1});
  const std::vector<float> result = products.run(c);
  const std::uint64_t lda = (ta ? c.k : c.m) + c.padding, ldb = (tb ? c.n : c.k) + c.padding, ldd = c.m + c.padding;
  for (std::uint64_t j = 0; j < c.n; ++j) {
    for (std::uint64_t i = 0; i < ldd; ++i) {
      double expected = number(j * ldd + i + 3);
      if (i < c.m) {  // the padding stays
        expected *= c.beta;
        for (std::uint64_t l = 0; l < c.k; ++l) {
          const double a = number((ta ? i * lda + l : l * lda + i) + 1),
                       b = number((tb ? l * ldb + j : j * ldb + l) + 2);
          expected += c.alpha * a * b;
        }
      }
      REQUIRE(result[j * ldd + i] == static_cast<float>(expected));  // multiples of 1/128: exact in any order
    }
  }
  CHECK(tessera_emulator_matmuls() == 1);
}

TEST_CASE("what has no product") {
  const Rig rig;
  const Products products(rig);
  const auto& blas = products.blas;
  cublasLtMatmulDesc_t product = nullptr;
  CHECK(blas.cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(blas.cublasLtMatmulDescDestroy(nullptr) == CUBLAS_STATUS_INVALID_VALUE);
  tessera_emulator_fail_call(1, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(blas.cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_ALLOC_FAILED);
}

}  // namespace test_emulated_blas
