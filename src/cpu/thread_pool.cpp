#include "cpu/thread_pool.hpp"

#include <algorithm>
#include <chrono>

#include "core/error.hpp"
#include "core/guard.hpp"
#include "os/error.hpp"

namespace tessera::cpu {

namespace {

using Clock = std::chrono::steady_clock;

// The time for which a thread polls for a new job before it parks. Waking a parked thread takes 5 to 50 microseconds. This time covers the
// gap between two operations of a step, and the gap between two tokens (sampling).
constexpr std::chrono::microseconds kSpinTime{100};

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `value` is no longer `old`: polls for kSpinTime, then parks.
void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  constexpr int kLooks = 16;  // looks between two readings of the clock: a pause takes 10 to 60 ns, the clock 25 ns
  const auto end = Clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (Clock::now() < end);
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(std::size_t threads) noexcept {
  return detail::guard([&]() -> Result<std::unique_ptr<ThreadPool>> {
    if (threads == 0) threads = usable_threads();
    std::unique_ptr<ThreadPool> pool(new ThreadPool);
    TESSERA_TRY_STATUS(pool->start(threads - 1));  // on error the destructor stops the started workers
    return pool;
  });
}

Status ThreadPool::start(std::size_t workers) {
  workers_.reserve(workers);
  const auto body = [](void* pool) -> void* {
    static_cast<ThreadPool*>(pool)->work();
    return nullptr;
  };
  for (std::size_t i = 0; i < workers; ++i) {
    os::ThreadHandle thread{};
    if (const int error = os::start_thread(body, this, thread); error != 0) {
      return detail::make_error(ErrorCode::out_of_memory, "thread {} of {} does not start: {}. Ask for fewer threads", i + 2,
                                workers + 1, os::words_of(error));
    }
    workers_.push_back(thread);
  }
  return {};
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (const os::ThreadHandle worker : workers_) os::join_thread(worker);
}

bool ThreadPool::join() noexcept {
  std::uint32_t members = members_.load(std::memory_order_relaxed);
  do {
    if ((members & kOpen) == 0) return false;
  } while (!members_.compare_exchange_weak(members, members + 1, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

void ThreadPool::leave() noexcept {
  if (members_.fetch_sub(1, std::memory_order_acq_rel) == 1) members_.notify_one();  // this was the last worker of a closed job
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
    if (!join()) continue;
    run_tasks();
    leave();
  }
}

void ThreadPool::parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept {
  if (n == 0) return;
  if (n == 1 || workers_.empty()) {
    for (std::size_t i = 0; i < n; ++i) task(context, i);
    return;
  }
  n_ = n;
  task_ = task;
  context_ = context;
  next_.store(0, std::memory_order_relaxed);
  members_.store(kOpen, std::memory_order_release);
  generation_.fetch_add(1);  // sequentially consistent: either notify_all() sees a worker parked, or the worker sees this
  generation_.notify_all();
  run_tasks();
  for (std::uint32_t left = members_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen; left != 0;
       left = members_.load(std::memory_order_acquire)) {
    wait_while(members_, left);
  }
}

}  // namespace tessera::cpu
