// Calls the host's clock and callbacks, from any thread. The first exception of a callback is stored until a step reports it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "core/callback.hpp"
#include "core/guard.hpp"
#include "core/guarded.hpp"

namespace tessera::detail {

class HostCalls {
 public:
  // `clock` must outlive this object. If it is empty, the steady clock is used.
  explicit HostCalls(const std::function<double()>& clock) : clock_(clock) {}

  // Returns the scheduler's time in seconds. If the host's clock throws, returns the time that it returned last.
  [[nodiscard]] double now() noexcept;
  [[nodiscard]] static double steady_seconds() noexcept;

  // Runs a callback of the host. If the callback throws, stores the error for take_error(). The caller must hold no lock, because the callback
  // may take locks of the host, and a thread that holds such a lock may wait for the scheduler. Exception: now() calls the host's clock while
  // a step holds its locks. No callback may call the scheduler.
  template <class Fn>
  void call(std::string_view name, Fn&& fn) noexcept {
    const Status called = guard([&]() -> Status { return call_host(name, std::forward<Fn>(fn)), Status(); });
    if (!called) note(called.error());
  }
  // Returns the first error of a callback since the last take_error().
  [[nodiscard]] std::optional<Error> take_error() noexcept;

 private:
  void note(const Error& error) noexcept;

  const std::function<double()>& clock_;
  std::atomic<double> last_time_ = 0.0;
  Guarded<std::optional<Error>> failed_;
};

// Measures the seconds of a step that are spent in sessions, the model and texts. The rest of the step's time is the scheduler's own
// (SchedulerFigures::planning). Threads: one at a time.
class EngineTime {
 public:
  void clear() noexcept { seconds_ = 0.0; }
  [[nodiscard]] double seconds() const noexcept { return seconds_; }
  // Runs fn() and adds its time. Nested calls of measure() within fn() are not counted twice.
  template <class Fn>
  void measure(Fn&& fn) {
    if (is_running_) return std::forward<Fn>(fn)();
    is_running_ = true;
    const double begin = HostCalls::steady_seconds();
    std::forward<Fn>(fn)();
    seconds_ += HostCalls::steady_seconds() - begin;
    is_running_ = false;
  }

 private:
  double seconds_ = 0.0;
  bool is_running_ = false;
};

}  // namespace tessera::detail
