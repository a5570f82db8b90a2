// What the machine can do: the two limits that a roofline has, measured by kernels that do nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::bench {

struct Limits {
  double read = 0;            // bytes a second, from memory
  std::string read_kernel;    // the one that was fastest
  double matrix = 0;          // floating-point operations a second, bf16 where the processor has it
};

// Reads all the bytes. The result keeps the compiler from leaving that out.
struct ReadKernel {
  std::string_view name;
  std::uint64_t (*run)(const std::byte* bytes, std::size_t count) noexcept;  // 64-byte aligned, count whole 64 KiB
};
[[nodiscard]] std::span<const ReadKernel> read_kernels() noexcept;

// Multiplies matrices in registers and the first-level cache.
struct MatrixKernel {
  std::string_view unit;
  double operations;                              // of one round
  float (*run)(std::uint64_t rounds) noexcept;
};
// The best that this processor and its system allow. Call it before there are threads: AMX needs permission.
[[nodiscard]] const MatrixKernel& matrix_kernel() noexcept;

// Runs task(i) for i in [0, threads), each on a thread of its own, from one moment on. Seconds until all are done.
[[nodiscard]] double time_together(std::size_t threads, const std::function<void(std::size_t)>& task);

// Measures the limits, as often as it is asked to: machines are noisy, and a result is to be compared with what the
// machine gave at about that time.
class Machine {
 public:
  // A buffer of `buffer_bytes` for reading, or of a quarter of the memory that is free, if that is less.
  Machine(std::size_t threads, std::uint64_t buffer_bytes);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  // The best of the read kernels, one pass each, and the best of three rounds of multiplications.
  [[nodiscard]] Limits measure();

  [[nodiscard]] std::span<const Limits> history() const noexcept { return history_; }
  [[nodiscard]] std::uint64_t buffer_bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view matrix_unit() const noexcept { return kernel_.unit; }
  [[nodiscard]] std::size_t threads() const noexcept { return threads_; }

 private:
  std::size_t threads_;
  std::uint64_t bytes_ = 0;
  std::byte* buffer_ = nullptr;
  const MatrixKernel& kernel_;
  std::uint64_t rounds_ = 1;
  std::vector<Limits> history_;
};

// "Intel(R) Xeon(R) Processor", or "unknown processor".
[[nodiscard]] std::string processor_name();

}  // namespace tessera::bench
