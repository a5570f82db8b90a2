#include "cuda/driver/blas_api.hpp"

#include <span>

#include "core/guard.hpp"
#include "cuda/driver/functions.hpp"

namespace tessera::cuda {

Result<std::shared_ptr<const BlasApi>> load_blas_api(const std::string& path) {
  const std::string given[] = {path};
  const std::string usual[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  const std::span<const std::string> paths = path.empty() ? std::span<const std::string>(usual) : given;
  TESSERA_TRY(void* const library, open_library(paths, "cuBLASLt is not installed, or not where the loader looks"));
  auto api = std::make_shared<BlasApi>();
  const Function functions[] = {
#define TESSERA_FUNCTION(name) {#name, reinterpret_cast<void**>(&api->name)},
      TESSERA_BLAS_FUNCTIONS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
  };
  TESSERA_TRY_STATUS(find_functions(library, functions, "cuBLASLt"));
  return std::shared_ptr<const BlasApi>(std::move(api));
}

}  // namespace tessera::cuda
