// The tables of the driver's and cuBLASLt's functions.
#include "cuda/driver/driver_api.hpp"

#include "catch.hpp"
#include "cuda/driver/blas_api.hpp"

namespace test_driver_api {

using namespace tessera;
using namespace tessera::cuda;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a library that has the functions fills the tables") {
  const auto driver = load_driver_api(TESSERA_CUDA_EMULATOR);
  REQUIRE(driver);
  REQUIRE((*driver)->cuInit(0) == CUDA_SUCCESS);
  int version = 0;
  CHECK((*driver)->cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(version >= 12000);
  const char* name = nullptr;
  CHECK((*driver)->cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name) == CUDA_SUCCESS);
  CHECK(std::string(name) == "CUDA_ERROR_OUT_OF_MEMORY");
#define TESSERA_FILLED(name) CHECK((*driver)->name != nullptr);
  TESSERA_DRIVER_FUNCTIONS(TESSERA_FILLED)
#undef TESSERA_FILLED

  const auto blas = load_blas_api(TESSERA_CUDA_EMULATOR);
  REQUIRE(blas);
  CHECK((*blas)->cublasLtGetVersion() >= 120000);
#define TESSERA_FILLED(name) CHECK((*blas)->name != nullptr);
  TESSERA_BLAS_FUNCTIONS(TESSERA_FILLED)
#undef TESSERA_FILLED
}

TEST_CASE("no driver is an error that says so, and what the loader said") {
  const auto driver = load_driver_api("/nowhere/libcuda.so.1");
  REQUIRE_FALSE(driver);
  CHECK(driver.error().code() == ErrorCode::not_found);
  CHECK_THAT(driver.error().text(), ContainsSubstring("no NVIDIA driver is installed (/nowhere/libcuda.so.1"));
  const auto blas = load_blas_api("/nowhere/libcublasLt.so");
  REQUIRE_FALSE(blas);
  CHECK(blas.error().code() == ErrorCode::not_found);
  CHECK_THAT(blas.error().text(), ContainsSubstring("cuBLASLt is not installed"));
}

TEST_CASE("a library without the functions is an error that names the first") {
  const auto driver = load_driver_api("libm.so.6");
  REQUIRE_FALSE(driver);
  CHECK(driver.error().code() == ErrorCode::unsupported);
  CHECK_THAT(driver.error().text(),
             ContainsSubstring("the NVIDIA driver is too old, or something else: it has no cuInit"));
  const auto blas = load_blas_api("libm.so.6");
  REQUIRE_FALSE(blas);
  CHECK(blas.error().code() == ErrorCode::unsupported);
  CHECK_THAT(blas.error().text(), ContainsSubstring("it has no cublasLtCreate"));
}

}  // namespace test_driver_api
