// Modules, which are all the kernels there are, and launches.
#include <cuda.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include <emulator/launch.hpp>

#include "driver.hpp"

using namespace tessera::emulator;  // NOLINT: a file of C functions
using Function = tessera::emulator::Function;

namespace {

constexpr std::size_t kMostShared = 227 << 10;  // of compute capability 9.0

// Whether it looks like an address of the process's memory that kernels on a GPU could not reach: not of device memory,
// and not of page-locked memory, which they can. Pages that nothing is mapped at are numbers that look like addresses.
bool is_host_address(const Driver& driver, std::uint64_t word) {
  if (word < 0x500000000000u || word >> 47 != 0) return false;  // below it are pairs of counts; and nothing of Linux's
  if ((word & 0xffffffffu) < 1u << 20) return false;  // a count, with whatever was in the padding behind it
  const auto* const at = reinterpret_cast<const void*>(word);
  if (driver.device.holds(at, 0) || driver.pinned.holds(at, 0)) return false;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(word / page * page), page, &resident) == 0;
}

CUresult run(Driver& driver, const Kernel& kernel, Grid grid, unsigned threads, std::size_t shared,
             const std::vector<std::uint64_t>& args) {
  for (std::size_t i = 0; i < kernel.args_bytes / 8; ++i) {
    if (!is_host_address(driver, args[i])) continue;
    driver.lose(CUDA_ERROR_ILLEGAL_ADDRESS,
                fmt::format("kernel {}: byte {} of its arguments is a pointer to host memory", kernel.name, i * 8));
    return driver.context.lost;
  }
  try {
    launch(kernel.name, grid, threads, shared, args.data(), kernel.args_bytes);
    ++driver.launches[kernel.name];
    return CUDA_SUCCESS;
  } catch (const std::exception& e) {
    driver.lose(CUDA_ERROR_LAUNCH_FAILED, e.what());
    return driver.context.lost;
  }
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* handle, const void* image) {
  return call("cuModuleLoadData", Needs::context, [&](Driver& driver) {
    if (handle == nullptr || image == nullptr) return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuModuleLoadData");
    auto module = std::make_unique<Module>();
    *handle = reinterpret_cast<CUmodule>(module.get());
    driver.modules.emplace(*handle, std::move(module));
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleUnload(CUmodule handle) {
  return release("cuModuleUnload", Needs::context, [&](Driver& driver) {
    const auto found = driver.modules.find(handle);
    if (found == driver.modules.end()) return driver.mistake(CUDA_ERROR_INVALID_HANDLE, "cuModuleUnload of no module");
    const CUresult result = driver.drain_all();
    for (const auto& entry : found->second->functions) {
      driver.functions.erase(reinterpret_cast<CUfunction>(entry.second.get()));
    }
    driver.modules.erase(found);
    return result;
  });
}

CUresult cuModuleGetFunction(CUfunction* handle, CUmodule module, const char* name) {
  return call("cuModuleGetFunction", Needs::context, [&](Driver& driver) {
    const auto found = driver.modules.find(module);
    if (found == driver.modules.end()) {
      return driver.mistake(CUDA_ERROR_INVALID_HANDLE, "cuModuleGetFunction of no module");
    }
    const Kernel* const kernel = find_kernel(name);
    if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
    auto& function = found->second->functions[name];
    if (function == nullptr) function = std::make_unique<Function>(Function{kernel});
    *handle = reinterpret_cast<CUfunction>(function.get());
    driver.functions.insert(*handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return call("cuFuncSetAttribute", Needs::context, [&](Driver& driver) {
    if (!driver.functions.contains(handle)) {
      return driver.mistake(CUDA_ERROR_INVALID_HANDLE, "cuFuncSetAttribute of no function");
    }
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return CUDA_SUCCESS;  // only a hint
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        static_cast<std::size_t>(value) > kMostShared) {
      return driver.mistake(CUDA_ERROR_INVALID_VALUE, fmt::format("cuFuncSetAttribute to {}", value));
    }
    reinterpret_cast<Function*>(handle)->max_dynamic_shared = static_cast<std::size_t>(value);
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream_handle, void** parameters,
                        void** extra) {
  return call("cuLaunchKernel", Needs::context, [&](Driver& driver) {
    Stream* const stream = driver.stream(stream_handle);
    if (stream == nullptr || !driver.functions.contains(handle)) {
      return driver.mistake(CUDA_ERROR_INVALID_HANDLE, "cuLaunchKernel of no function or on no stream");
    }
    const Function& function = *reinterpret_cast<const Function*>(handle);
    const Kernel& kernel = *function.kernel;
    const char* wrong = nullptr;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0) wrong = "a grid without blocks";
    if (grid_x > 0x7fffffffu || grid_y > 65535 || grid_z > 65535) wrong = "too large a grid";
    if (block_x == 0 || block_x > kernel.max_threads || block_y != 1 || block_z != 1) wrong = "a block's threads";
    if (shared > function.max_dynamic_shared) wrong = "more dynamic shared memory than it was given";
    if (parameters == nullptr || parameters[0] == nullptr || extra != nullptr) wrong = "its arguments";
    if (wrong != nullptr) {
      return driver.mistake(
          CUDA_ERROR_INVALID_VALUE,
          fmt::format("kernel {} with a grid of {} x {} x {} blocks of {} x {} x {} threads, {} bytes of "
                      "shared memory: {}",
                      kernel.name, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, wrong));
    }
    auto args = std::make_shared<std::vector<std::uint64_t>>((kernel.args_bytes + 7) / 8);
    std::memcpy(args->data(), parameters[0], kernel.args_bytes);
    driver.push(*stream, {[=, &driver, &kernel] {
                            return run(driver, kernel, {grid_x, grid_y, grid_z}, block_x, shared, *args);
                          },
                          {},
                          {}});
    return CUDA_SUCCESS;
  });
}
}
