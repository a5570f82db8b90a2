// Measures the overhead of the thread pool's parallel_for(). The counter `overhead` is the time of a call in seconds, minus the time that
// the tasks themselves need if they are spread evenly over the threads.
#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>

#include "cpu/thread_pool.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A task that waits, busily, for the nanoseconds to which `context` points; if they are 0, it returns at once.
void busy(void* context, std::size_t) {
  const auto time = std::chrono::nanoseconds(*static_cast<const std::int64_t*>(context));
  if (time.count() == 0) return;
  const auto start = Clock::now();
  while (Clock::now() - start < time) {
  }
}

// Measures parallel_for(). Arguments (state.range): threads; nanoseconds of a task; microseconds of sleep before each call.
void parallel_for(benchmark::State& state) {
  const auto threads = static_cast<std::size_t>(state.range(0));
  std::int64_t task_time = state.range(1);
  const std::chrono::microseconds idle(state.range(2));
  auto pool = tessera::cpu::ThreadPool::create(threads);
  if (!pool) {
    state.SkipWithError(pool.error().message().c_str());
    return;
  }
  double total = 0.0;
  for (auto _ : state) {
    if (idle.count() > 0) std::this_thread::sleep_for(idle);
    const auto start = Clock::now();
    (*pool)->parallel_for(threads, busy, &task_time);
    const double seconds = seconds_since(start);
    state.SetIterationTime(seconds);
    total += seconds;
  }
  const double average = total / static_cast<double>(state.iterations());
  state.counters["overhead"] = average - static_cast<double>(task_time) * 1e-9;
}

}  // namespace

// Calls without a pause between them, like the short operations of a decode step.
BENCHMARK(parallel_for)->ArgNames({"threads", "task_ns", "idle_us"})->ArgsProduct({{1, 2}, {0, 2'000, 20'000}, {0}})
    ->UseManualTime();
// Calls after a pause. After an idle millisecond the pool's threads sleep, and must be woken first.
BENCHMARK(parallel_for)->ArgNames({"threads", "task_ns", "idle_us"})->ArgsProduct({{2}, {0, 2'000, 20'000}, {30, 1'000}})
    ->UseManualTime()->Iterations(200);
