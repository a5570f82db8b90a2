#include "cpu/thread_pool.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/guard.hpp"
#include "core/wait.hpp"
#include "os/error.hpp"

namespace tessera::cpu {

using detail::wait_while;

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
