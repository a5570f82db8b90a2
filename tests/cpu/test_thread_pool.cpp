// The pool runs every task once, whatever its size, and can be made and ended at any time.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "cpu/thread_pool.hpp"

namespace test_thread_pool {

using tessera::cpu::ThreadPool;

namespace {

template <class Fn>
void parallel_for(tessera::Executor& executor, std::size_t n, Fn fn) {
  executor.parallel_for(n, [](void* context, std::size_t i) { (*static_cast<Fn*>(context))(i); }, &fn);
}

}  // namespace

TEST_CASE("every task runs exactly once", "[pool]") {
  for (const std::size_t threads : {1u, 2u, 3u, 8u}) {
    auto pool = ThreadPool::create(threads);
    REQUIRE(pool);
    CHECK((*pool)->concurrency() == threads);
    for (int round = 0; round < 300; ++round) {
      const auto n = static_cast<std::size_t>(round % 37);
      std::vector<std::atomic<int>> runs(n);
      parallel_for(**pool, n, [&](std::size_t i) { runs[i].fetch_add(1, std::memory_order_relaxed); });
      for (const auto& count : runs) REQUIRE(count.load() == 1);
    }
  }
}

TEST_CASE("writes of tasks are seen by the caller, and the caller's by tasks", "[pool]") {
  auto pool = ThreadPool::create(4);
  REQUIRE(pool);
  std::vector<long> values(64, 0);
  for (long round = 1; round <= 2000; ++round) {
    parallel_for(**pool, values.size(), [&](std::size_t i) { values[i] += round; });
  }
  for (const long value : values) CHECK(value == 2000L * 2001 / 2);
}

TEST_CASE("parked workers wake up, and a pool ends while its workers are parked or have never worked", "[pool]") {
  for (int round = 0; round < 20; ++round) {
    auto pool = ThreadPool::create(3);
    REQUIRE(pool);
    if (round % 2 == 0) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough to park
    std::atomic<int> runs{0};
    parallel_for(**pool, 5, [&](std::size_t) { ++runs; });
    CHECK(runs == 5);
  }
}

TEST_CASE("workers leave the host's signals to the host's threads", "[pool]") {
  auto pool = ThreadPool::create(4);
  REQUIRE(pool);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> by_workers{0}, wrong{0};
  for (int round = 0; round < 2000 && by_workers < 20; ++round) {
    parallel_for(**pool, 8, [&](std::size_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));  // or the caller would do them all
      if (std::this_thread::get_id() == caller) return;
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      ++by_workers;
      for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM}) wrong += sigismember(&blocked, signal) != 1;
      for (const int signal : {SIGSEGV, SIGBUS, SIGFPE}) wrong += sigismember(&blocked, signal) != 0;
    });
  }
  CHECK(by_workers >= 20);
  CHECK(wrong == 0);
}

TEST_CASE("tasks that take a while are shared among threads", "[pool]") {
  auto pool = ThreadPool::create(3);
  REQUIRE(pool);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  for (int round = 0; round < 2000 && threads.size() < 3; ++round) {
    parallel_for(**pool, 6, [&](std::size_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
  }
  CHECK(threads.size() == 3);
}

}  // namespace test_thread_pool
