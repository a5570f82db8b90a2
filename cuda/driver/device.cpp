#include "cuda/driver/device.hpp"

#include "core/error.hpp"
#include "cuda/driver/images.hpp"

namespace tessera::cuda {

namespace {

constexpr int kLeastCapability = 80;  // the kernels are compiled for this compute capability (TesseraCuda.cmake)

// Returns the name that the driver has for an error, or "an unknown error" if the driver has none. Never fails or throws, because
// destructors call the function too.
const char* name_of(const DriverApi& api, CUresult result) noexcept {
  const char* name = nullptr;
  return api.cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr ? name : "an unknown error";
}
const char* text_of(const DriverApi& api, CUresult result) noexcept {
  const char* text = nullptr;
  return api.cuGetErrorString(result, &text) == CUDA_SUCCESS && text != nullptr ? text : "no description";
}

// Returns whether the result means that this driver cannot load the kernels of this build, or that this GPU cannot run them.
bool is_mismatch(CUresult result) noexcept {
  return result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
         result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_INVALID_PTX ||
         result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}

}  // namespace

Result<std::shared_ptr<Device>> Device::open(const DeviceOptions& options) {
  auto api = load_driver_api(options.driver_library);
  if (!api) {
    // A missing driver is reported as unsupported. Exception: if the options name the driver's file, the error stays as it is.
    const bool usual = options.driver_library.empty() && api.error().code() == ErrorCode::not_found;
    return detail::make_error(usual ? ErrorCode::unsupported : api.error().code(), "{}; choose the cpu backend",
                              api.error().message());
  }
  std::shared_ptr<Device> device(new Device(*std::move(api)));
  TESSERA_TRY_STATUS(device->init(options));
  return device;
}

Status Device::check(CUresult result, const char* doing) const noexcept {
  if (result == CUDA_SUCCESS) return {};
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    return detail::make_error(ErrorCode::out_of_memory, "the GPU has no memory left to {}", doing);
  }
  return detail::make_error(ErrorCode::device_error, "the GPU failed to {}: {} ({}, {})", doing, name_of(*api_, result),
                            static_cast<int>(result), text_of(*api_, result));
}

Status Device::init(const DeviceOptions& options) {
  if (const CUresult result = api_->cuInit(0); result != CUDA_SUCCESS) {
    return detail::make_error(ErrorCode::unsupported, "there is no GPU to use: the driver says {} ({})",
                              name_of(*api_, result), text_of(*api_, result));
  }
  int count = 0;
  TESSERA_TRY_STATUS(check(api_->cuDeviceGetCount(&count), "be counted"));
  if (options.ordinal < 0 || options.ordinal >= count) {
    return detail::make_error(ErrorCode::invalid_argument, "GPU {} of {}: choose one from 0 on", options.ordinal,
                              count);
  }
  TESSERA_TRY_STATUS(check(api_->cuDeviceGet(&device_, options.ordinal), "be found"));
  char name[256] = {};
  TESSERA_TRY_STATUS(check(api_->cuDeviceGetName(name, sizeof name - 1, device_), "say its name"));
  name_ = name;
  int major = 0, minor = 0;
  const auto attribute = [&](int& value, CUdevice_attribute which) {
    return check(api_->cuDeviceGetAttribute(&value, which, device_), "say what it can do");
  };
  TESSERA_TRY_STATUS(attribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  TESSERA_TRY_STATUS(attribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  TESSERA_TRY_STATUS(attribute(multiprocessors_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  capability_ = major * 10 + minor;
  if (capability_ < kLeastCapability) {
    return detail::make_error(ErrorCode::unsupported,
                              "{} has compute capability {}.{}; tessera needs 8.0 (Ampere) or newer", name_, major,
                              minor);
  }
  TESSERA_TRY_STATUS(check(api_->cuDevicePrimaryCtxRetain(&context_, device_), "make its context"));
  const Scope scope(*this);
  TESSERA_TRY_STATUS(scope.status());
  if (options.stream != nullptr) {
    CUcontext of = nullptr;
    TESSERA_TRY_STATUS(
        check(api_->cuStreamGetCtx(static_cast<CUstream>(options.stream), &of), "look at the given stream"));
    if (of != context_) {
      return detail::make_error(ErrorCode::invalid_argument, "the given stream is not of GPU {}'s primary context",
                                options.ordinal);
    }
    stream_ = static_cast<CUstream>(options.stream);
  } else {
    TESSERA_TRY_STATUS(check(api_->cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0), "make a stream"));
    owns_stream_ = true;
  }
  return load_kernels();
}

Status Device::load_kernels() {
  modules_.reserve(images().size());
  for (const Image& image : images()) {
    CUmodule module = nullptr;
    const CUresult result = api_->cuModuleLoadData(&module, image.bytes);
    if (is_mismatch(result)) {
      int version = 0;
      (void)api_->cuDriverGetVersion(&version);
      return detail::make_error(
          ErrorCode::unsupported,
          "{} cannot run the kernels of this build ({}): its driver is for CUDA {}.{}, they were made with "
          "{}.{}; a newer driver may",
          name_, name_of(*api_, result), version / 1000, version % 1000 / 10, CUDA_VERSION / 1000,
          CUDA_VERSION % 1000 / 10);
    }
    TESSERA_TRY_STATUS(check(result, "load its kernels"));
    modules_.push_back(module);
  }
  return {};
}

Device::~Device() {
  if (context_ == nullptr) return;
  {
    const Scope scope(*this);
    // If the device is lost, these calls fail too. A destructor cannot report that.
    for (const CUmodule module : modules_) (void)api_->cuModuleUnload(module);
    if (owns_stream_) (void)api_->cuStreamDestroy(stream_);
  }
  (void)api_->cuDevicePrimaryCtxRelease(device_);
}

Device::Scope::Scope(const Device& device) noexcept
    : device_(device), result_(device.api_->cuCtxPushCurrent(device.context_)) {
  // Tries again, as wait() does: the first call may report the error of an earlier one, and code that frees memory needs the context.
  if (result_ != CUDA_SUCCESS) result_ = device.api_->cuCtxPushCurrent(device.context_);
}
Device::Scope::~Scope() {
  CUcontext left = nullptr;
  if (result_ == CUDA_SUCCESS) (void)device_.api_->cuCtxPopCurrent(&left);
}

Result<Kernel> Device::kernel(std::string_view name) const {
  const std::string text(name);
  for (const CUmodule module : modules_) {
    Kernel kernel;
    const CUresult result = api_->cuModuleGetFunction(&kernel.function, module, text.c_str());
    if (result == CUDA_SUCCESS) return kernel;
    if (result != CUDA_ERROR_NOT_FOUND) TESSERA_TRY_STATUS(check(result, "find a kernel"));
  }
  return detail::make_error(ErrorCode::internal, "there is no kernel {}", name);
}

Status Device::allow_shared(Kernel kernel, std::size_t bytes) const {
  constexpr std::size_t kAlways = 48 * 1024;
  if (bytes <= kAlways) return {};
  return check(api_->cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        static_cast<int>(bytes)),
               "give a kernel its shared memory");
}

Status Device::launch_bytes(Kernel kernel, Grid grid, std::uint32_t threads, std::size_t shared,
                            const void* args) const {
  void* parameters[] = {const_cast<void*>(args)};  // the driver only reads the arguments
  ++launches_;
  return check(api_->cuLaunchKernel(kernel.function, grid.x, grid.y, grid.z, threads, 1, 1,
                                    static_cast<unsigned>(shared), stream_, parameters, nullptr),
               "start a kernel");
}

Status Device::to_device(CUdeviceptr to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return {};
  return check(api_->cuMemcpyHtoDAsync(to, from, bytes, stream_), "copy to its memory");
}

Status Device::to_host(void* to, CUdeviceptr from, std::size_t bytes) const {
  if (bytes == 0) return {};
  return check(api_->cuMemcpyDtoHAsync(to, from, bytes, stream_), "copy from its memory");
}

CUresult Device::wait(CUstream stream) const noexcept {
  const CUresult result = api_->cuStreamSynchronize(stream);
  return result == CUDA_SUCCESS ? result : api_->cuStreamSynchronize(stream);
}

Status Device::synchronize() const noexcept {
  const CUresult result = api_->cuStreamSynchronize(stream_);
  // Waits again, so that no work is left in the stream. The first result is returned as an error even if the second wait succeeds.
  if (result != CUDA_SUCCESS) (void)wait(stream_);
  return check(result, "finish its work");
}

}  // namespace tessera::cuda
