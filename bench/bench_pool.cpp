// The thread pool by itself: what a parallel_for costs beside its tasks. The counter `overhead` is seconds beyond the
// tasks' own time, were they spread evenly.
#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>

#include "cpu/thread_pool.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Tasks that look at the clock for `context` nanoseconds; 0: nothing at all.
void busy(void* context, std::size_t) {
  const auto time = std::chrono::nanoseconds(*static_cast<const std::int64_t*>(context));
  if (time.count() == 0) return;
  const auto start = Clock::now();
  while (Clock::now() - start < time) {
  }
}

// state.range: threads, nanoseconds a task, microseconds of sleep before.
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

// Back to back: a decode step's chain of short operations.
BENCHMARK(parallel_for)->ArgNames({"threads", "task_ns", "idle_us"})->ArgsProduct({{1, 2}, {0, 2'000, 20'000}, {0}})
    ->UseManualTime();
// After an idle millisecond the workers are parked.
BENCHMARK(parallel_for)->ArgNames({"threads", "task_ns", "idle_us"})->ArgsProduct({{2}, {0, 2'000, 20'000}, {30, 1'000}})
    ->UseManualTime()->Iterations(200);
