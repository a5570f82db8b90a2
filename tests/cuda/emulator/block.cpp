#include "block.hpp"

#include <fmt/format.h>

#include <bit>
#include <exception>
#include <stdexcept>

thread_local constinit tessera::emulator::Index threadIdx{};
thread_local constinit tessera::emulator::Index blockIdx{};
thread_local constinit tessera::emulator::Index blockDim{};
thread_local constinit tessera::emulator::Index gridDim{};

namespace tessera::emulator {
namespace {

struct Abandoned {};  // unwinds a thread whose block has failed

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::sync_warp:
      return "sync_warp";
    case Operation::shuffle_xor:
      return "shuffle_xor";
    case Operation::shuffle:
      return "shuffle";
    case Operation::shuffle_up:
      return "shuffle_up";
    case Operation::ballot:
      return "ballot";
  }
  return "?";
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

unsigned Order::pick(std::uint32_t bits) {
  if (seed_ == 0) return static_cast<unsigned>(std::countr_zero(bits));
  if (seed_ == 1) return 31 - static_cast<unsigned>(std::countl_zero(bits));
  state_ += 0x9e3779b97f4a7c15u;
  const unsigned turn = static_cast<unsigned>(mix(state_) % 32);
  return (static_cast<unsigned>(std::countr_zero(std::rotr(bits, static_cast<int>(turn)))) + turn) % 32;
}

std::uint64_t Order::block(std::uint64_t i, std::uint64_t blocks) const {
  if (seed_ == 0) return i;
  if (seed_ == 1) return blocks - 1 - i;
  // A bijection of the next power of two, walked until it falls below `blocks`: no list of them all.
  const std::uint64_t mask = std::bit_ceil(blocks) - 1;
  const int half = (std::bit_width(mask) + 1) / 2;
  do {
    i = (i * (2 * mix(seed_) + 1) + mix(seed_ + 1)) & mask;
    i ^= i >> (half > 0 ? half : 1);
  } while (i >= blocks);
  return i;
}

Block::Block() : of_thread_(kMaxThreads) {}
Block::~Block() = default;

Block& Block::of_this_thread() {
  static thread_local Block block;
  return block;
}

void Block::run(const Kernel& kernel, const void* args, unsigned threads, void* shared, Order& order) {
  kernel_ = &kernel;
  args_ = args;
  threads_ = threads;
  shared_ = shared;
  order_ = &order;
  at_barrier_ = ended_ = 0;
  abandoned_ = false;
  error_.clear();
  warps_.resize((threads + 31) / 32);
  for (unsigned w = 0; w < warps_.size(); ++w) {
    const unsigned lanes = threads - w * 32 < 32 ? threads - w * 32 : 32;
    Warp& warp = warps_[w];
    warp.existing = warp.unstarted = 0xffffffffu >> (32 - lanes);
    warp.ready = warp.arrived = warp.at_barrier = warp.ended = 0;
    warp.turn = 0;
  }

  threadIdx = {32 * order.pick(0xffffffffu >> (32 - warps_.size())), 0, 0};
  const auto first = static_cast<unsigned>(choose());
  main_.switch_to(fiber_for(first));

  if (error_.empty() && ended_ < threads_) error_ = deadlock();
  if (error_.empty()) return;
  abandon_rest();
  throw std::runtime_error(
      fmt::format("kernel {}, block ({}, {}, {}): {}", kernel.name, blockIdx.x, blockIdx.y, blockIdx.z, error_));
}

// A fiber runs one thread after another as long as they end without waiting: most need no stack of their own.
void Block::fiber_main() noexcept {
  Block& block = of_this_thread();
  for (;;) {
    block.run_thread();
    Fiber& self = *block.running_;
    const int next = block.error_.empty() && !block.abandoned_ ? block.choose() : -1;
    if (next >= 0 && block.is_unstarted(static_cast<unsigned>(next))) {
      block.enter(static_cast<unsigned>(next));
      continue;
    }
    block.idle_.push_back(&self);
    self.switch_to(next >= 0 ? block.fiber_for(static_cast<unsigned>(next)) : block.main_);
  }
}

void Block::run_thread() noexcept {
  try {
    kernel_->run(args_);
  } catch (const Abandoned&) {
  } catch (const std::exception& e) {
    if (error_.empty()) error_ = fmt::format("thread {}: {}", threadIdx.x, e.what());
  } catch (...) {
    if (error_.empty()) error_ = fmt::format("thread {}: an exception", threadIdx.x);
  }
  warps_[threadIdx.x / 32].ended |= 1u << threadIdx.x % 32;
  ++ended_;
}

// Of the running thread's warp as long as one of it can run.
int Block::choose() {
  unsigned w = threadIdx.x / 32;
  if ((warps_[w].ready | warps_[w].unstarted) == 0) {
    std::uint32_t able = 0;
    for (unsigned i = 0; i < warps_.size(); ++i) {
      if ((warps_[i].ready | warps_[i].unstarted) != 0) able |= 1u << i;
    }
    if (able == 0) return -1;
    w = order_->pick(able);
  }
  return static_cast<int>(w * 32 + order_->pick(warps_[w].ready | warps_[w].unstarted));
}

bool Block::is_unstarted(unsigned thread) const { return (warps_[thread / 32].unstarted >> thread % 32 & 1) != 0; }

void Block::enter(unsigned thread) {
  Warp& warp = warps_[thread / 32];
  const std::uint32_t bit = 1u << thread % 32;
  warp.unstarted &= ~bit;
  warp.ready &= ~bit;
  threadIdx.x = thread;
}

// Enters the thread: the fiber returned is to be switched to.
Fiber& Block::fiber_for(unsigned thread) {
  Fiber* fiber = of_thread_[thread];
  if (is_unstarted(thread)) {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>(&Block::fiber_main));
      idle_.reserve(fibers_.size());
      idle_.push_back(fibers_.back().get());
    }
    fiber = idle_.back();
    idle_.pop_back();
  }
  enter(thread);
  running_ = fiber;
  return *fiber;
}

void Block::suspend() {
  Fiber& self = *running_;
  of_thread_[threadIdx.x] = &self;
  const int next = choose();
  self.switch_to(next >= 0 ? fiber_for(static_cast<unsigned>(next)) : main_);
  if (abandoned_) throw Abandoned{};
}

void Block::sync_block() {
  Warp& mine = warps_[threadIdx.x / 32];
  const std::uint32_t bit = 1u << threadIdx.x % 32;
  mine.at_barrier |= bit;
  if (++at_barrier_ < threads_) return suspend();
  at_barrier_ = 0;
  for (Warp& warp : warps_) {
    warp.ready = warp.at_barrier;
    warp.at_barrier = 0;
  }
  mine.ready &= ~bit;
}

const std::uint64_t* Block::warp_operation(Operation operation, std::uint64_t value) {
  Warp& warp = warps_[threadIdx.x / 32];
  const unsigned lane = threadIdx.x % 32;
  if (warp.arrived != 0 && warp.operation != operation) {
    throw std::runtime_error(
        fmt::format("{} while other lanes of its warp are in {}", name_of(operation), name_of(warp.operation)));
  }
  warp.operation = operation;
  std::uint64_t* const values = warp.values[warp.turn];
  values[lane] = value;
  warp.arrived |= 1u << lane;
  if (warp.arrived != warp.existing) {
    suspend();
  } else {
    warp.ready = warp.existing & ~(1u << lane);
    warp.arrived = 0;
    warp.turn ^= 1;
  }
  return values;
}

void Block::check_lane(unsigned lane) const {
  if (lane < 32 && (warps_[threadIdx.x / 32].existing >> lane & 1) != 0) return;
  throw std::runtime_error(fmt::format("a shuffle reads lane {}, which its warp does not have", lane));
}

void Block::abandon_rest() {
  abandoned_ = true;
  for (unsigned thread = 0; thread < threads_; ++thread) {
    const Warp& warp = warps_[thread / 32];
    if (((warp.unstarted | warp.ended) >> thread % 32 & 1) != 0) continue;
    main_.switch_to(fiber_for(thread));
  }
}

std::string Block::deadlock() const {
  std::string text = "deadlock: ";
  for (unsigned w = 0; w < warps_.size(); ++w) {
    if (warps_[w].arrived == 0) continue;
    text += fmt::format("{} lanes of warp {} wait in {}, ", std::popcount(warps_[w].arrived), w,
                        name_of(warps_[w].operation));
  }
  return text + fmt::format("{} threads wait in sync_block, {} have left", at_barrier_, ended_);
}

}  // namespace tessera::emulator
