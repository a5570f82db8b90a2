// Measures the limits of a GPU and prints them as one JSON object: bytes a second read and copied, operations a second of bf16 matrix
// products, and times of kernel launches. All are medians. The data are random, because products of zeros draw less power and so run
// faster. To build and run it on the machine with the GPU:
//   nvcc -std=c++17 -O3 -arch=native -o limits bench/cuda/limits.cu -lcublas && ./limits
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;
constexpr std::size_t kBufferBytes = 4 * kGiB;    // much larger than any cache
constexpr int kMatrix = 8192;                     // rows, columns and inputs of the product
constexpr std::size_t kBlasWorkspace = 64 << 20;  // more than cuBLAS recommends for Hopper
constexpr unsigned kThreads = 512, kBlocksPerMultiprocessor = 4;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "limits: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}
void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "limits: %s: cuBLAS status %d\n", what, static_cast<int>(status));
  std::exit(1);
}

// splitmix64 (Steele, Lea, Flood 2014).
__host__ __device__ std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

__device__ std::size_t first_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::size_t all_threads() { return std::size_t{gridDim.x} * blockDim.x; }

// Fills `out` with random bf16 numbers in [-1, 1).
__global__ void fill(__nv_bfloat16* out, std::size_t count) {
  for (std::size_t i = first_index(); i < count; i += all_threads()) {
    out[i] = __float2bfloat16(static_cast<float>(mix(i) >> 40) / static_cast<float>(1 << 23) - 1.0f);
  }
}

__device__ void add(uint4& sum, const uint4& value) {
  sum.x ^= value.x;
  sum.y ^= value.y;
  sum.z ^= value.z;
  sum.w ^= value.w;
}

// Uses the sum, so that the compiler does not remove the reads. Writes only if the sum has one certain value, once in 2^32.
__device__ void keep(const uint4& sum, unsigned* out) {
  if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9e3779b9u) *out = 1;
}

// Reads the buffer and adds up what it reads, so that the compiler keeps the reads. Threads with neighbouring numbers read neighbouring
// addresses, over the whole grid. Each thread has kFlight loads of 16 bytes in flight at a time.
template <int kFlight>
__global__ void __launch_bounds__(kThreads) read_side_by_side(const uint4* in, std::size_t count, unsigned* out) {
  const std::size_t stride = all_threads();
  std::size_t i = first_index();
  uint4 sum{};
  for (; i + (kFlight - 1) * stride < count; i += kFlight * stride) {
    uint4 values[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k) values[k] = __ldcs(in + i + k * stride);
#pragma unroll
    for (int k = 0; k < kFlight; ++k) add(sum, values[k]);
  }
  for (; i < count; i += stride) add(sum, __ldcs(in + i));
  keep(sum, out);
}

// Reads the buffer in parts: each thread block reads one contiguous part from its beginning to its end.
__global__ void __launch_bounds__(kThreads) read_by_parts(const uint4* in, std::size_t count, unsigned* out) {
  constexpr int kFlight = 8;
  const std::size_t part = (count + gridDim.x - 1) / gridDim.x, begin = part * blockIdx.x;
  const std::size_t end = begin + part < count ? begin + part : count;
  std::size_t i = begin + threadIdx.x;
  uint4 sum{};
  for (; i + (kFlight - 1) * kThreads < end; i += kFlight * kThreads) {
    uint4 values[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k) values[k] = __ldcs(in + i + k * kThreads);
#pragma unroll
    for (int k = 0; k < kFlight; ++k) add(sum, values[k]);
  }
  for (; i < end; i += kThreads) add(sum, __ldcs(in + i));
  keep(sum, out);
}

__global__ void nothing() {}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Returns the median of the device's seconds for `work`, over `runs` runs, after `warm_ups` runs that do not count.
template <class Work>
double device_seconds(int warm_ups, int runs, const Work& work) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> seconds;
  for (int run = -warm_ups; run < runs; ++run) {
    check(cudaEventRecord(begin), "cudaEventRecord");
    work();
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), "a kernel");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    if (run >= 0) seconds.push_back(milliseconds / 1e3);
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  return median(seconds);
}

struct Read {
  const char* kernel;
  double bytes_per_second;
};

Read best_read(const std::byte* buffer, std::size_t bytes, unsigned blocks, unsigned* out) {
  const auto* in = reinterpret_cast<const uint4*>(buffer);
  const std::size_t count = bytes / sizeof(uint4);
  const auto rate = [&](auto kernel) {
    const double seconds = device_seconds(2, 15, [&] { kernel<<<blocks, kThreads>>>(in, count, out); });
    check(cudaGetLastError(), "a read kernel");
    return static_cast<double>(bytes) / seconds;
  };
  const Read reads[] = {{"side by side, 4 loads", rate(read_side_by_side<4>)},
                        {"side by side, 8 loads", rate(read_side_by_side<8>)},
                        {"by parts, 8 loads", rate(read_by_parts)}};
  return *std::max_element(std::begin(reads), std::end(reads),
                           [](const Read& a, const Read& b) { return a.bytes_per_second < b.bytes_per_second; });
}

// Returns the bytes a second of a copy within the device; bytes read and bytes written both count.
double copy_rate(std::byte* buffer, std::size_t bytes) {
  const std::size_t half = bytes / 2;
  const double seconds = device_seconds(
      2, 15, [&] { check(cudaMemcpyAsync(buffer + half, buffer, half, cudaMemcpyDeviceToDevice), "cudaMemcpyAsync"); });
  return 2 * static_cast<double>(half) / seconds;
}

// Measures a square matrix product by cuBLAS, with bf16 inputs and outputs and sums in f32. Returns the floating-point operations a second.
// The three matrices lie in `buffer`.
double matrix_rate(std::byte* buffer, void* workspace) {
  constexpr std::size_t kValues = std::size_t{kMatrix} * kMatrix;
  auto* values = reinterpret_cast<__nv_bfloat16*>(buffer);
  cublasHandle_t blas;
  check(cublasCreate(&blas), "cublasCreate");
  check(cublasSetWorkspace(blas, workspace, kBlasWorkspace), "cublasSetWorkspace");
  const float one = 1, zero = 0;
  // Weights are transposed, as in a model's products.
  const double seconds = device_seconds(5, 21, [&] {
    check(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, kMatrix, kMatrix, kMatrix, &one, values, CUDA_R_16BF, kMatrix,
                       values + kValues, CUDA_R_16BF, kMatrix, &zero, values + 2 * kValues, CUDA_R_16BF, kMatrix,
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT), "cublasGemmEx");
  });
  check(cublasDestroy(blas), "cublasDestroy");
  return 2.0 * kMatrix * kMatrix * kMatrix / seconds;
}

// Returns the host's median seconds from a kernel's launch until the host knows that the kernel is done.
double launch_and_wait() {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int run = -50; run < 1000; ++run) {
    const auto begin = Clock::now();
    nothing<<<1, 32>>>();
    check(cudaStreamSynchronize(nullptr), "an empty kernel");
    if (run >= 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return median(seconds);
}

// Returns the device's seconds for one of many empty kernels that are launched one after another in a stream, without a CUDA graph.
double launch_after_launch() {
  constexpr int kLaunches = 1000;
  return device_seconds(3, 15, [] {
    for (int i = 0; i < kLaunches; ++i) nothing<<<1, 32>>>();
  }) / kLaunches;
}

}  // namespace

int main() {
  cudaDeviceProp device{};
  int driver = 0, runtime = 0;
  std::size_t free_bytes = 0, all_bytes = 0;
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
  const std::size_t bytes = std::min(kBufferBytes, free_bytes / 2) / kGiB * kGiB;
  if (bytes == 0) {
    std::fprintf(stderr, "limits: needs 2 GiB of free memory on the device\n");
    return 1;
  }
  std::byte* buffer = nullptr;
  void* workspace = nullptr;
  unsigned* out = nullptr;
  check(cudaMalloc(&buffer, bytes), "cudaMalloc");
  check(cudaMalloc(&workspace, kBlasWorkspace), "cudaMalloc");
  check(cudaMalloc(&out, sizeof(*out)), "cudaMalloc");
  const auto blocks = static_cast<unsigned>(device.multiProcessorCount) * kBlocksPerMultiprocessor;
  fill<<<blocks, kThreads>>>(reinterpret_cast<__nv_bfloat16*>(buffer), bytes / sizeof(__nv_bfloat16));
  check(cudaDeviceSynchronize(), "filling the buffer");

  const double wait = launch_and_wait(), gap = launch_after_launch();
  const Read read = best_read(buffer, bytes, blocks, out);
  const double matrix = matrix_rate(buffer, workspace);
  const double copy = copy_rate(buffer, bytes);
  std::printf("{\"device\": \"%s\", \"capability\": \"%d.%d\", \"multiprocessors\": %d, \"memory_gb\": %.1f, "
              "\"cuda_of_driver\": \"%d.%d\", \"cuda_of_runtime\": \"%d.%d\", "
              "\"read_gb_per_s\": %.1f, \"read_kernel\": \"%s\", \"read_buffer_gib\": %zu, \"copy_gb_per_s\": %.1f, "
              "\"matrix_tflop_per_s\": %.1f, \"matrix\": \"bf16, %d x %d x %d, cuBLAS\", "
              "\"launch_and_wait_us\": %.2f, \"launch_gap_us\": %.2f}\n",
              device.name, device.major, device.minor, device.multiProcessorCount,
              static_cast<double>(all_bytes) / 1e9, driver / 1000, driver % 1000 / 10, runtime / 1000,
              runtime % 1000 / 10, read.bytes_per_second / 1e9, read.kernel, bytes / kGiB, copy / 1e9, matrix / 1e12,
              kMatrix, kMatrix, kMatrix, wait * 1e6, gap * 1e6);
  check(cudaFree(buffer), "cudaFree");
  check(cudaFree(workspace), "cudaFree");
  check(cudaFree(out), "cudaFree");
}
