#include "measure/limits.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

#include "failure.hpp"

namespace tessera::bench {

namespace {

constexpr std::uint64_t kStep = std::uint64_t{64} << 10;  // a thread reads a multiple of this many bytes
constexpr double kMatrixSeconds = 0.02;                   // about the seconds of one measurement of multiplications

std::uint64_t first_number(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::uint64_t number = 0;
    if (word == key && file >> number) return number;
  }
  return 0;
}

// Returns the bytes of memory that are free: the machine's, or the container's if it has a lower limit.
std::uint64_t available_memory() {
  std::uint64_t bytes = first_number("/proc/meminfo", "MemAvailable:") << 10;
  std::uint64_t limit = 0, used = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit && std::ifstream("/sys/fs/cgroup/memory.current") >> used) {
    bytes = std::min(bytes, limit > used ? limit - used : 0);
  }
  return bytes;
}

}  // namespace

double time_together(std::size_t threads, const std::function<void(std::size_t)>& task) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin;
  std::barrier gate(static_cast<std::ptrdiff_t>(threads), [&]() noexcept { begin = Clock::now(); });
  {
    std::vector<std::jthread> team;
    for (std::size_t i = 1; i < threads; ++i) {
      team.emplace_back([&, i] {
        gate.arrive_and_wait();
        task(i);
      });
    }
    gate.arrive_and_wait();
    task(0);
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Processor::Processor(std::size_t threads, std::uint64_t buffer_bytes) : threads_(threads), kernel_(matrix_kernel()) {
  const std::uint64_t share = kStep * threads, available = available_memory();
  if (available != 0) buffer_bytes = std::min(buffer_bytes, available / 4);
  bytes_ = std::max<std::uint64_t>(buffer_bytes / share, 1) * share;
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw Failure("no memory for measuring the read bandwidth: --read-buffer takes less");
  buffer_ = static_cast<std::byte*>(at);
#ifdef MADV_HUGEPAGE
  (void)madvise(at, bytes_, MADV_HUGEPAGE);
#endif
  // Writes the buffer: the system may map pages that were never written to one and the same page of zeros.
  const std::size_t slice = bytes_ / threads_;
  (void)time_together(threads_, [&](std::size_t i) { std::memset(buffer_ + i * slice, 1, slice); });
  while (rounds_ < (std::uint64_t{1} << 40)) {
    const double seconds = time_together(threads_, [&](std::size_t) { (void)kernel_.run(rounds_); });
    if (seconds > kMatrixSeconds / 2) break;
    rounds_ *= 2;
  }
}

Processor::~Processor() { munmap(buffer_, bytes_); }

Limits Processor::measure() {
  Limits limits;
  const std::size_t slice = bytes_ / threads_;
  for (const ReadKernel& kernel : read_kernels()) {
    const double seconds =
        time_together(threads_, [&](std::size_t i) { (void)kernel.run(buffer_ + i * slice, slice); });
    const double rate = static_cast<double>(bytes_) / seconds;
    if (rate <= limits.read) continue;
    limits.read = rate;
    limits.read_kernel = kernel.name;
  }
  for (int round = 0; round < 3; ++round) {
    const double seconds = time_together(threads_, [&](std::size_t) { (void)kernel_.run(rounds_); });
    const double operations = kernel_.operations * static_cast<double>(rounds_) * static_cast<double>(threads_);
    limits.matrix = std::max(limits.matrix, operations / seconds);
  }
  history_.push_back(limits);
  return limits;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace tessera::bench
