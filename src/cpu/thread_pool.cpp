#include "cpu/thread_pool.hpp"

#include <algorithm>

#include "support/guard.hpp"

namespace tessera::cpu {

namespace {

// About 20 microseconds of looking before a thread parks: longer than the gap between two operations of a step, short
// enough not to matter where threads outnumber cores.
constexpr int kSpins = 400;

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `value` is no longer `old`.
void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(std::size_t threads) noexcept {
  return detail::guard([&]() -> Result<std::unique_ptr<ThreadPool>> {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    std::unique_ptr<ThreadPool> pool(new ThreadPool);
    pool->workers_.reserve(threads - 1);
    // If a thread cannot be started the destructor stops those that were.
    for (std::size_t i = 1; i < threads; ++i) pool->workers_.emplace_back([raw = pool.get()] { raw->work(); });
    return pool;
  });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_tasks() noexcept {
  for (std::size_t i = next_.fetch_add(1, std::memory_order_relaxed); i < n_;
       i = next_.fetch_add(1, std::memory_order_relaxed)) {
    task_(context_, i);
  }
}

void ThreadPool::work() noexcept {
  std::uint32_t seen = 0;
  for (;;) {
    wait_while(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    run_tasks();
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

void ThreadPool::parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept {
  if (n == 0) return;
  if (n == 1 || workers_.empty()) {
    for (std::size_t i = 0; i < n; ++i) task(context, i);
    return;
  }
  task_ = task;
  context_ = context;
  n_ = n;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  run_tasks();
  for (std::uint32_t left = busy_.load(std::memory_order_acquire); left != 0;
       left = busy_.load(std::memory_order_acquire)) {
    wait_while(busy_, left);
  }
}

}  // namespace tessera::cpu
