#include <emulator/launch.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string_view>

#include "block.hpp"

namespace tessera::emulator {
namespace {

struct Registry {
  std::mutex mutex;
  std::multimap<std::string_view, const Kernel*> kernels;
};

Registry& registry() {
  static auto* const registry = new Registry;  // kernels leave it when their libraries are unloaded, in any order
  return *registry;
}

std::atomic<std::uint64_t> order_seed{0};

// Exactly as large as asked for where AddressSanitizer sees what is touched beyond; else with bytes behind that tell.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : bytes_(bytes), memory_(static_cast<unsigned char*>(::operator new(bytes + kBehind, kAlignment))) {
    std::memset(memory_ + bytes_, kMark, kBehind);
  }
  ~SharedMemory() { ::operator delete(memory_, kAlignment); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void* fresh() {
    std::memset(memory_, 0xff, bytes_);
    return memory_;
  }
  bool overrun() const {
    for (std::size_t i = 0; i < kBehind; ++i) {
      if (memory_[bytes_ + i] != kMark) return true;
    }
    return false;
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::size_t kBehind = 0;
#else
  static constexpr std::size_t kBehind = 256;
#endif
  static constexpr unsigned char kMark = 0xa5;
  static constexpr std::align_val_t kAlignment{16};

  std::size_t bytes_;
  unsigned char* memory_;
};

}  // namespace

Registered::Registered(const Kernel& kernel) : kernel_(kernel) {
  const std::lock_guard lock(registry().mutex);
  registry().kernels.emplace(kernel_.name, &kernel_);
}

Registered::~Registered() {
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().kernels, [this](const auto& entry) { return entry.second == &kernel_; });
}

const Kernel* find_kernel(const char* name) {
  const std::lock_guard lock(registry().mutex);
  const auto [first, last] = registry().kernels.equal_range(name);
  if (first == last) return nullptr;
  if (std::next(first) != last) throw std::runtime_error(fmt::format("two kernels are called {}", name));
  return first->second;
}

void* dynamic_shared() { return Block::of_this_thread().shared(); }
void sync_block() { Block::of_this_thread().sync_block(); }
const std::uint64_t* warp_operation(Operation operation, std::uint64_t value) {
  return Block::of_this_thread().warp_operation(operation, value);
}
void check_lane(unsigned lane) { Block::of_this_thread().check_lane(lane); }

void check_aligned(const void* at, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(at) % bytes == 0) return;
  throw std::runtime_error(fmt::format("{} bytes are read from an address that is no multiple of {}", bytes, bytes));
}

void set_order(std::uint64_t seed) { order_seed = seed; }

void launch(const char* name, Grid grid, unsigned threads, std::size_t shared_bytes, const void* args,
            std::size_t args_bytes) {
  const Kernel* const kernel = find_kernel(name);
  if (kernel == nullptr) throw std::runtime_error(fmt::format("no kernel is called {}", name));
  if (args_bytes != kernel->args_bytes) {
    throw std::runtime_error(
        fmt::format("kernel {} takes arguments of {} bytes, not {}", name, kernel->args_bytes, args_bytes));
  }
  if (threads == 0 || threads > kernel->max_threads || threads > kMaxThreads) {
    throw std::runtime_error(
        fmt::format("kernel {} runs in blocks of at most {} threads, not {}", name, kernel->max_threads, threads));
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    throw std::runtime_error(
        fmt::format("kernel {}: no block in a grid of {} x {} x {}", name, grid.x, grid.y, grid.z));
  }

  // Of all threads: kernels' static shared memory is the process's. (A thread's own would be too large for a library that
  // is opened at run time.)
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  gridDim = {grid.x, grid.y, grid.z};
  blockDim = {threads, 1, 1};
  Block& block = Block::of_this_thread();
  SharedMemory shared(shared_bytes);
  Order order(order_seed);
  const std::uint64_t plane = std::uint64_t{grid.x} * grid.y;
  const std::uint64_t blocks = plane * grid.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t at = order.block(i, blocks);
    blockIdx = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at % plane / grid.x),
                static_cast<unsigned>(at / plane)};
    block.run(*kernel, args, threads, shared.fresh(), order);
    if (shared.overrun()) {
      throw std::runtime_error(
          fmt::format("kernel {} writes beyond its {} bytes of dynamic shared memory", name, shared_bytes));
    }
  }
}

}  // namespace tessera::emulator
