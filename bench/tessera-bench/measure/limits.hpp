// The limits of a machine, with which results are compared (a roofline shows both): how fast the machine reads memory, and how fast it
// multiplies matrices. They are measured by kernels that only read or only multiply, or stated on the command line.
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
  double read = 0;            // bytes a second that are read from memory; 0: not known
  std::string read_kernel;    // name of the read kernel that was fastest; empty: nothing was measured
  double matrix = 0;          // floating-point operations a second, in bf16 if the processor has it; 0: not known
};

// A way to read memory. run() reads all of the bytes, and returns a number made of them, so that the compiler does not remove the reads.
struct ReadKernel {
  std::string_view name;
  std::uint64_t (*run)(const std::byte* bytes, std::size_t count) noexcept;  // bytes: aligned to 64; count: a multiple of 64 KiB
};
[[nodiscard]] std::span<const ReadKernel> read_kernels() noexcept;

// A way to multiply matrices whose operands lie in registers and the first-level cache.
struct MatrixKernel {
  std::string_view unit;
  double operations;                              // floating-point operations of one round
  float (*run)(std::uint64_t rounds) noexcept;
};
// Returns the fastest kernel that this processor and the operating system allow. Call it before the program makes threads, because it asks
// the system for permission to use AMX.
[[nodiscard]] const MatrixKernel& matrix_kernel() noexcept;

// Runs task(i) for each i in [0, threads), each on a thread of its own; all begin at the same moment. Returns the seconds until all are
// done.
[[nodiscard]] double time_together(std::size_t threads, const std::function<void(std::size_t)>& task);

// The machine that computes (a CPU or a GPU), as the tests see it: measure() returns its limits. The limits are measured again and again,
// because they change while other programs run: a result is compared with limits of about the same time.
class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  [[nodiscard]] virtual Limits measure() = 0;
  // Returns all limits that measure() has returned; empty if they are not known.
  [[nodiscard]] virtual std::span<const Limits> history() const noexcept = 0;
  // Returns the bytes of the buffer with which the read bandwidth is measured; 0: it is not measured.
  [[nodiscard]] virtual std::uint64_t buffer_bytes() const noexcept = 0;
};

// This machine's processor; its limits are measured.
class Processor final : public Machine {
 public:
  // Makes a buffer for reading, of `buffer_bytes` bytes, or of a quarter of the free memory if that is smaller.
  Processor(std::size_t threads, std::uint64_t buffer_bytes);
  ~Processor() override;

  // Runs each read kernel once and the matrix kernel three times, and returns the best of each.
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

// A device (GPU). Its limits come from the command line, or are not known.
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

// Returns the processor's name, "Intel(R) Xeon(R) Processor" for example, or "unknown processor".
[[nodiscard]] std::string processor_name();

}  // namespace tessera::bench
