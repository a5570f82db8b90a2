#include "cuda/driver/driver_api.hpp"

#include "core/guard.hpp"
#include "cuda/driver/functions.hpp"

namespace tessera::cuda {

Result<std::shared_ptr<const DriverApi>> load_driver_api(const std::string& path) {
  const std::string paths[] = {path.empty() ? "libcuda.so.1" : path};
  TESSERA_TRY(void* const library, open_library(paths, "no NVIDIA driver is installed"));
  auto api = std::make_shared<DriverApi>();
  const Function functions[] = {
#define TESSERA_FUNCTION(name) {#name, reinterpret_cast<void**>(&api->name)},
      TESSERA_DRIVER_FUNCTIONS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
  };
  TESSERA_TRY_STATUS(find_functions(library, functions, "the NVIDIA driver"));
  return std::shared_ptr<const DriverApi>(std::move(api));
}

}  // namespace tessera::cuda
