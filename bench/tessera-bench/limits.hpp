// What the machine can do: the two limits that a roofline has, measured by kernels that do nothing else, or given.
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
  double read = 0;            // bytes a second, from memory; 0: nobody knows
  std::string read_kernel;    // the one that was fastest; empty: nobody has measured
  double matrix = 0;          // floating-point operations a second, bf16 where the processor has it; 0 as above
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

// What computes. Asked for its limits again and again: machines are noisy, and a result is to be compared with what
// the machine gave at about that time.
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  [[nodiscard]] virtual Limits measure() = 0;
  // All that it has said, unless it knows nothing.
  [[nodiscard]] virtual std::span<const Limits> history() const noexcept = 0;
  // What the read bandwidth is measured with; 0: it is not measured.
  [[nodiscard]] virtual std::uint64_t buffer_bytes() const noexcept = 0;
};

// This processor.
class Processor final : public Machine {
 public:
  // A buffer of `buffer_bytes` for reading, or of a quarter of the memory that is free, if that is less.
  Processor(std::size_t threads, std::uint64_t buffer_bytes);
  ~Processor() override;

  // The best of the read kernels, one pass each, and the best of three rounds of multiplications.
  [[nodiscard]] Limits measure() override;
  [[nodiscard]] std::span<const Limits> history() const noexcept override { return history_; }
  [[nodiscard]] std::uint64_t buffer_bytes() const noexcept override { return bytes_; }

 private:
  std::size_t threads_;
  std::uint64_t bytes_ = 0;
  std::byte* buffer_ = nullptr;
  const MatrixKernel& kernel_;
  std::uint64_t rounds_ = 1;
  std::vector<Limits> history_;
};

// A device whose limits somebody else has measured, or nobody.
class Device final : public Machine {
 public:
  explicit Device(const Limits& limits) : limits_(limits) {}

  [[nodiscard]] Limits measure() override { return limits_; }
  [[nodiscard]] std::span<const Limits> history() const noexcept override {
    return {&limits_, limits_.read > 0 ? std::size_t{1} : 0};
  }
  [[nodiscard]] std::uint64_t buffer_bytes() const noexcept override { return 0; }

 private:
  Limits limits_;
};

// "Intel(R) Xeon(R) Processor", or "unknown processor".
[[nodiscard]] std::string processor_name();

}  // namespace tessera::bench
