// The emulated driver is as strict as a real one where mistakes are likely, and late where a real one may be.
#include <thread>
#include <vector>

#include "cuda/driver/driver_api.hpp"
#include "cuda/kernels/device.hpp"
#include "rig.hpp"

namespace test_emulated_driver {

using tessera::tests::Rig;

namespace {

struct ScaleArgs {
  float* values;
  std::uint32_t n;
  float by;
};

}  // namespace

TESSERA_KERNEL(test_scale, 128, ScaleArgs) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < args.n) args.values[i] *= args.by;
}
TESSERA_KERNEL(test_hang, 64, ScaleArgs) {
  if (threadIdx.x < args.n) tessera::cuda::sync_block();
}

namespace {

CUfunction function_of(const Rig& rig, CUmodule& module, const char* name) {
  const char image = 0;
  REQUIRE(rig.api.cuModuleLoadData(&module, &image) == CUDA_SUCCESS);
  CUfunction function = nullptr;
  REQUIRE(rig.api.cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
  return function;
}

CUresult launch(const Rig& rig, CUfunction function, unsigned blocks, unsigned threads, ScaleArgs args,
                unsigned shared = 0) {
  void* parameters[] = {&args};
  return rig.api.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, rig.stream, parameters, nullptr);
}

}  // namespace

TEST_CASE("nothing has happened before somebody waits") {
  const Rig rig;
  const auto& api = rig.api;
  CUmodule module = nullptr;
  const CUfunction scale = function_of(rig, module, "test_scale");
  const CUdeviceptr at = rig.device(4 * sizeof(float));
  float* const in = rig.pinned<float>(4);
  float* const out = rig.pinned<float>(4);
  for (int i = 0; i < 4; ++i) in[i] = static_cast<float>(i), out[i] = -1.0f;

  REQUIRE(api.cuMemcpyHtoDAsync(at, in, 16, rig.stream) == CUDA_SUCCESS);
  REQUIRE(launch(rig, scale, 1, 4, {reinterpret_cast<float*>(at), 4, 3.0f}) == CUDA_SUCCESS);
  REQUIRE(api.cuMemcpyDtoHAsync(out, at, 16, rig.stream) == CUDA_SUCCESS);
  CHECK(out[3] == -1.0f);
  CHECK(tessera_emulator_launches("test_scale") == 0);

  SECTION("and then all of it") {
    REQUIRE(api.cuStreamSynchronize(rig.stream) == CUDA_SUCCESS);
    CHECK(std::vector<float>(out, out + 4) == std::vector<float>{0, 3, 6, 9});
    CHECK(tessera_emulator_launches("test_scale") == 1);
    CHECK(tessera_emulator_launches(nullptr) == 1);
  }
  SECTION("a staging buffer that is written too early spoils the copy") {
    in[3] = 100.0f;
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(out[3] == 300.0f);
  }
  SECTION("memory that is not page-locked is staged by the driver") {
    std::vector<float> pageable = {5, 6, 7, 8};
    REQUIRE(api.cuMemcpyHtoDAsync(at, pageable.data(), 16, rig.stream) == CUDA_SUCCESS);
    pageable.assign(4, 0.0f);
    REQUIRE(api.cuMemcpyDtoHAsync(out, at, 16, rig.stream) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamSynchronize(rig.stream) == CUDA_SUCCESS);
    CHECK(std::vector<float>(out, out + 4) == std::vector<float>{5, 6, 7, 8});
  }
  SECTION("a free of device memory waits") {
    CHECK(api.cuMemFree(rig.device(1)) == CUDA_SUCCESS);
    CHECK(out[3] == 9.0f);
  }
  CHECK(api.cuMemFree(at) == CUDA_SUCCESS);
  CHECK(api.cuMemFreeHost(in) == CUDA_SUCCESS);
  CHECK(api.cuMemFreeHost(out) == CUDA_SUCCESS);
  CHECK(api.cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(tessera_emulator_mistakes() == 0);
}

TEST_CASE("page-locked memory that is freed while a copy waits for it loses the device") {
  const Rig rig;
  const CUdeviceptr at = rig.device(4);
  char* const in = rig.pinned<char>(4);
  REQUIRE(rig.api.cuMemcpyHtoDAsync(at, in, 4, rig.stream) == CUDA_SUCCESS);
  CHECK(rig.api.cuMemFreeHost(in) == CUDA_SUCCESS);
  CHECK(rig.api.cuStreamSynchronize(rig.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(rig.api.cuMemFree(at) == CUDA_ERROR_ILLEGAL_ADDRESS);  // and it is free
}

TEST_CASE("streams run apart from each other, and events order them") {
  const Rig rig;
  const auto& api = rig.api;
  CUstream other = nullptr;
  REQUIRE(api.cuStreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
  CUevent event = nullptr;
  REQUIRE(api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  const CUdeviceptr at = rig.device(1);
  unsigned char* const out = rig.pinned<unsigned char>(1);
  *out = 9;
  REQUIRE(api.cuMemsetD8Async(at, 1, 1, rig.stream) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamSynchronize(rig.stream) == CUDA_SUCCESS);
  REQUIRE(api.cuMemsetD8Async(at, 2, 1, rig.stream) == CUDA_SUCCESS);
  REQUIRE(api.cuEventRecord(event, rig.stream) == CUDA_SUCCESS);
  REQUIRE(api.cuMemsetD8Async(at, 3, 1, rig.stream) == CUDA_SUCCESS);

  SECTION("without an event") {
    REQUIRE(api.cuMemcpyDtoHAsync(out, at, 1, other) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamSynchronize(other) == CUDA_SUCCESS);
    CHECK(*out == 1);
  }
  SECTION("with one") {
    REQUIRE(api.cuStreamWaitEvent(other, event, 0) == CUDA_SUCCESS);
    REQUIRE(api.cuMemcpyDtoHAsync(out, at, 1, other) == CUDA_SUCCESS);
    REQUIRE(api.cuEventDestroy(event) == CUDA_SUCCESS);  // what waits still waits
    event = nullptr;
    REQUIRE(api.cuStreamSynchronize(other) == CUDA_SUCCESS);
    CHECK(*out == 2);
  }
  SECTION("a thread waits for one, and for no more") {
    REQUIRE(api.cuMemcpyDtoHAsync(out, at, 1, rig.stream) == CUDA_SUCCESS);
    REQUIRE(api.cuEventSynchronize(event) == CUDA_SUCCESS);
    CHECK(*out == 9);
    REQUIRE(api.cuStreamSynchronize(rig.stream) == CUDA_SUCCESS);
    CHECK(*out == 3);
  }
  SECTION("a destroyed stream's work is done") {
    REQUIRE(api.cuMemcpyDtoHAsync(out, at, 1, other) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamDestroy(other) == CUDA_SUCCESS);
    CHECK(api.cuMemsetD8Async(at, 3, 1, other) == CUDA_ERROR_INVALID_HANDLE);
    other = nullptr;
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(*out != 9);
  }
  if (event != nullptr) CHECK(api.cuEventDestroy(event) == CUDA_SUCCESS);
  if (other != nullptr) CHECK(api.cuStreamDestroy(other) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(at) == CUDA_SUCCESS);
  CHECK(api.cuMemFreeHost(out) == CUDA_SUCCESS);
}

TEST_CASE("times between events") {
  const Rig rig;
  CUevent first = nullptr, last = nullptr;
  REQUIRE(rig.api.cuEventCreate(&first, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  REQUIRE(rig.api.cuEventCreate(&last, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  float ms = -1.0f;
  CHECK(rig.api.cuEventElapsedTime(&ms, first, last) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(rig.api.cuEventRecord(first, rig.stream) == CUDA_SUCCESS);
  REQUIRE(rig.api.cuEventRecord(last, rig.stream) == CUDA_SUCCESS);
  CHECK(rig.api.cuEventElapsedTime(&ms, first, last) == CUDA_ERROR_NOT_READY);
  REQUIRE(rig.api.cuEventSynchronize(last) == CUDA_SUCCESS);
  CHECK(rig.api.cuEventElapsedTime(&ms, first, last) == CUDA_SUCCESS);
  CHECK(ms >= 0.0f);
  CHECK(rig.api.cuEventDestroy(first) == CUDA_SUCCESS);
  CHECK(rig.api.cuEventDestroy(last) == CUDA_SUCCESS);
}

TEST_CASE("pointers of the wrong kind, and beyond the end") {
  const Rig rig;
  const auto& api = rig.api;
  const CUdeviceptr at = rig.device(64);
  std::vector<char> host(128);
  char* const pinned = rig.pinned<char>(64);
  const auto as_device = reinterpret_cast<CUdeviceptr>(host.data());
  const auto as_host = reinterpret_cast<void*>(at);
  CHECK(api.cuMemcpyHtoDAsync(as_device, host.data(), 8, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyHtoDAsync(at, as_host, 8, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyDtoHAsync(as_host, at, 8, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyDtoHAsync(host.data(), as_device, 8, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyHtoDAsync(at, host.data(), 65, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyHtoDAsync(at + 1, host.data(), 64, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyDtoHAsync(pinned + 1, at, 64, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyDtoDAsync(at, at + 8, 9, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemsetD8Async(at + 60, 0, 5, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemFree(at + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemFreeHost(host.data()) == CUDA_ERROR_INVALID_VALUE);
  CHECK(tessera_emulator_mistakes() == 11);
  CHECK(api.cuMemcpyHtoDAsync(at, host.data(), 64, rig.stream) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(at) == CUDA_SUCCESS);
  CHECK(api.cuMemcpyHtoDAsync(at, host.data(), 64, rig.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

TEST_CASE("a kernel that is given host memory loses the device, and so does one that hangs") {
  const Rig rig;
  CUmodule module = nullptr;
  const CUdeviceptr at = rig.device(16);
  // Large: the emulator takes an address of few low bits, which a sanitizer gives to small ones, for a count.
  std::vector<float> host(std::size_t{1} << 20);
  SECTION("host memory") {
    const CUfunction scale = function_of(rig, module, "test_scale");
    REQUIRE(launch(rig, scale, 1, 4, {host.data(), 4, 1.0f}) == CUDA_SUCCESS);
    CHECK(rig.api.cuStreamSynchronize(rig.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_THAT(tessera_emulator_last_mistake(), Catch::Matchers::ContainsSubstring("byte 0 of its arguments"));
  }
  SECTION("a barrier that some left") {
    const CUfunction hang = function_of(rig, module, "test_hang");
    REQUIRE(launch(rig, hang, 1, 64, {nullptr, 63, 1.0f}) == CUDA_SUCCESS);
    CHECK(rig.api.cuStreamSynchronize(rig.stream) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK_THAT(tessera_emulator_last_mistake(), Catch::Matchers::ContainsSubstring("deadlock"));
    CHECK(launch(rig, hang, 1, 64, {nullptr, 64, 1.0f}) == CUDA_ERROR_LAUNCH_FAILED);
  }
  CUdeviceptr more = 0;
  CHECK(rig.api.cuMemAlloc(&more, 1) != CUDA_SUCCESS);
  CHECK(rig.api.cuMemFree(at) != CUDA_SUCCESS);  // and it is free
  CHECK(rig.api.cuModuleUnload(module) != CUDA_SUCCESS);
}

TEST_CASE("a context that nobody retains any more ends what was lost") {
  {
    const Rig rig;
    tessera_emulator_lose_device(1, CUDA_ERROR_LAUNCH_FAILED);
    CHECK(rig.api.cuStreamSynchronize(rig.stream) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(rig.api.cuStreamSynchronize(rig.stream) == CUDA_ERROR_LAUNCH_FAILED);
  }
  CUcontext context = nullptr;
  const auto api = tessera::tests::emulated_driver();
  REQUIRE(api->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  REQUIRE(api->cuCtxPushCurrent(context) == CUDA_SUCCESS);
  CHECK(api->cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(api->cuCtxPopCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(api->cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
}

TEST_CASE("launches that a driver refuses") {
  const Rig rig;
  const auto& api = rig.api;
  CUmodule module = nullptr;
  const CUfunction scale = function_of(rig, module, "test_scale");
  const ScaleArgs args{nullptr, 0, 1.0f};
  ScaleArgs copy = args;
  void* parameters[] = {&copy};
  const auto with_grid = [&](unsigned x, unsigned y, unsigned z) {
    return api.cuLaunchKernel(scale, x, y, z, 32, 1, 1, 0, rig.stream, parameters, nullptr);
  };
  CHECK(with_grid(0, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(with_grid(1, 65536, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(with_grid(1, 1, 65536) == CUDA_ERROR_INVALID_VALUE);
  CHECK(with_grid(1, 65535, 1) == CUDA_SUCCESS);
  CHECK(launch(rig, scale, 1, 0, args) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(rig, scale, 1, 129, args) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(rig, scale, 1, 128, args, 48 << 10) == CUDA_SUCCESS);
  CHECK(launch(rig, scale, 1, 128, args, (48 << 10) + 1) == CUDA_ERROR_INVALID_VALUE);
  const auto most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CHECK(api.cuFuncSetAttribute(scale, most, (227 << 10) + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuFuncSetAttribute(scale, most, 227 << 10) == CUDA_SUCCESS);
  CHECK(launch(rig, scale, 1, 128, args, 227 << 10) == CUDA_SUCCESS);
  CUfunction none = nullptr;
  CHECK(api.cuModuleGetFunction(&none, module, "test_no_such_kernel") == CUDA_ERROR_NOT_FOUND);
  CHECK(api.cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(launch(rig, scale, 1, 128, args) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("calls without a current context") {
  const Rig rig;
  std::vector<CUresult> results;
  unsigned depth = 0;
  std::thread([&] {
    CUdeviceptr at = 0;
    results.push_back(rig.api.cuMemAlloc(&at, 1));  // the context is another thread's
    results.push_back(rig.api.cuCtxPushCurrent(rig.context));
    depth = static_cast<unsigned>(tessera_emulator_context_depth());
    results.push_back(rig.api.cuMemAlloc(&at, 1));
    results.push_back(rig.api.cuMemFree(at));
    results.push_back(rig.api.cuCtxPopCurrent(nullptr));
    results.push_back(rig.api.cuCtxPopCurrent(nullptr));
  }).join();
  CHECK(results == std::vector<CUresult>{CUDA_ERROR_INVALID_CONTEXT, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_ERROR_INVALID_CONTEXT});
  CHECK(depth == 1);
}

TEST_CASE("memory ends, and comes back") {
  const Rig rig;
  tessera_emulator_set_total_memory(1000);
  const CUdeviceptr first = rig.device(600);
  std::size_t free = 0, total = 0;
  REQUIRE(rig.api.cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  CHECK(free == 400);
  CHECK(total == 1000);
  CUdeviceptr second = 0;
  CHECK(rig.api.cuMemAlloc(&second, 401) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(tessera_emulator_live().device_bytes == 600);
  CHECK(rig.api.cuMemFree(first) == CUDA_SUCCESS);
  second = rig.device(1000);
  CHECK(rig.api.cuMemFree(second) == CUDA_SUCCESS);
}

TEST_CASE("the k-th call fails, once") {
  const Rig rig;
  const std::uint64_t before = tessera_emulator_calls();
  tessera_emulator_fail_call(2, CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr at = rig.device(8);
  CHECK(rig.api.cuMemFree(at) == CUDA_ERROR_OUT_OF_MEMORY);  // which frees it all the same
  CHECK(tessera_emulator_live().device_buffers == 0);
  CHECK(rig.api.cuMemFree(rig.device(8)) == CUDA_SUCCESS);
  CHECK(tessera_emulator_calls() == before + 4);
}

TEST_CASE("what is not destroyed is counted") {
  const Rig rig;
  const auto before = tessera_emulator_live();
  const CUdeviceptr at = rig.device(8);
  int* const pinned = rig.pinned<int>(1);
  CUevent event = nullptr;
  CUmodule module = nullptr;
  REQUIRE(rig.api.cuEventCreate(&event, 0) == CUDA_SUCCESS);
  REQUIRE(rig.api.cuModuleLoadData(&module, "image") == CUDA_SUCCESS);
  const auto live = tessera_emulator_live();
  CHECK(live.device_buffers == before.device_buffers + 1);
  CHECK(live.device_bytes == before.device_bytes + 8);
  CHECK(live.pinned_buffers == before.pinned_buffers + 1);
  CHECK(live.events == before.events + 1);
  CHECK(live.modules == before.modules + 1);
  CHECK(live.streams == 1);
  CHECK(live.contexts == 1);
  CHECK(rig.api.cuMemFree(at) == CUDA_SUCCESS);
  CHECK(rig.api.cuMemFreeHost(pinned) == CUDA_SUCCESS);
  CHECK(rig.api.cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(rig.api.cuModuleUnload(module) == CUDA_SUCCESS);
}

TEST_CASE("the device is what a test says") {
  tessera_emulator_reset();
  const auto api = tessera::tests::emulated_driver();
  tessera_emulator_set_device_count(0);
  CHECK(api->cuInit(0) == CUDA_ERROR_NO_DEVICE);
  tessera_emulator_reset();
  REQUIRE(api->cuInit(0) == CUDA_SUCCESS);
  tessera_emulator_set_compute_capability(7, 5);
  tessera_emulator_set_multiprocessors(3);
  int value = 0;
  CHECK(api->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) == CUDA_SUCCESS);
  CHECK(value == 7);
  CHECK(api->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) == CUDA_SUCCESS);
  CHECK(value == 3);
  CUdevice device = -1;
  CHECK(api->cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
  tessera_emulator_reset();
}

}  // namespace test_emulated_driver
