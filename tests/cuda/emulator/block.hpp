// The threads of one block, as fibers: which of them runs, which could, and what the others wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <emulator/fiber.hpp>
#include <emulator/kernel.hpp>

namespace tessera::emulator {

inline constexpr unsigned kMaxThreads = 1024;

// Which of several comes next. See set_order().
class Order {
 public:
  explicit Order(std::uint64_t seed) : seed_(seed), state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  unsigned pick(std::uint32_t bits);                                 // one of the set ones
  std::uint64_t block(std::uint64_t i, std::uint64_t blocks) const;  // the i-th to run

 private:
  std::uint64_t seed_;
  std::uint64_t state_;
};

// One for an OS thread, which keeps its stacks for the next block.
class Block {
 public:
  Block();
  ~Block();
  static Block& of_this_thread();

  // Until all of its threads have ended; blockIdx is set. Throws std::runtime_error.
  void run(const Kernel& kernel, const void* args, unsigned threads, void* shared, Order& order);

  void* shared() const { return shared_; }
  void sync_block();
  const std::uint64_t* warp_operation(Operation operation, std::uint64_t value);
  void check_lane(unsigned lane) const;

 private:
  // Bits are lanes. A started lane that is neither ready nor arrived waits in sync_block() or is the one that runs.
  struct Warp {
    std::uint32_t existing = 0;
    std::uint32_t unstarted = 0;
    std::uint32_t ready = 0;
    std::uint32_t arrived = 0;  // at `operation`
    std::uint32_t at_barrier = 0;
    std::uint32_t ended = 0;
    Operation operation{};
    // Of this operation and the one before, which lanes may not have read yet: none is two ahead.
    unsigned turn = 0;
    std::uint64_t values[2][32];
  };

  static void fiber_main() noexcept;
  void run_thread() noexcept;
  int choose();  // a thread that can run, or -1
  bool is_unstarted(unsigned thread) const;
  void enter(unsigned thread);  // makes it the running one
  Fiber& fiber_for(unsigned thread);
  void suspend();
  void abandon_rest();
  std::string deadlock() const;

  const Kernel* kernel_ = nullptr;
  const void* args_ = nullptr;
  unsigned threads_ = 0;
  void* shared_ = nullptr;
  Order* order_ = nullptr;

  std::vector<Warp> warps_;
  unsigned at_barrier_ = 0;
  unsigned ended_ = 0;
  bool abandoned_ = false;  // what is suspended only unwinds
  std::string error_;       // the first

  Fiber main_;
  Fiber* running_ = nullptr;
  std::vector<Fiber*> of_thread_;  // suspended ones
  std::vector<Fiber*> idle_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

}  // namespace tessera::emulator
