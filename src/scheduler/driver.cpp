// The thread that drives a scheduler.
#include <chrono>
#include <cmath>
#include <thread>

#include "scheduler/scheduler_state.hpp"
#include "support/empty.hpp"
#include "support/error.hpp"

namespace tessera {

using Lock = std::unique_lock<std::mutex>;

struct [[gnu::visibility("hidden")]] Driver::State {
  std::shared_ptr<Scheduler::State> scheduler;
  std::condition_variable idle;
  bool is_stopping = false, is_idle = false;  // guarded by the scheduler's mutex
  std::thread thread;

  void work() noexcept {
    for (;;) {
      {
        const Lock lock(scheduler->mutex);
        if (is_stopping) return;
        is_idle = false;
      }
      const Result<bool> more = detail::guard([&] { return scheduler->step(); });
      Lock lock(scheduler->mutex);
      if (is_stopping) return;
      if ((more && *more) || scheduler->has_news) continue;
      is_idle = scheduler->inbox.empty() && scheduler->waiting_now == 0 && scheduler->running_now == 0;
      if (is_idle) idle.notify_all();
      const auto news = [&] { return is_stopping || scheduler->has_news; };
      // An injected clock says nothing about how long to sleep: look again soon.
      const double wake = more ? scheduler->wake_time : 0.0;  // a step that failed is tried again
      if (std::isinf(wake)) scheduler->changed.wait(lock, news);
      else scheduler->changed.wait_for(lock, std::chrono::milliseconds(5), news);
    }
  }

  ~State() { stop(); }
  void stop() noexcept {
    {
      const Lock lock(scheduler->mutex);
      if (is_stopping) return;
      is_stopping = true;
      --scheduler->drivers;
    }
    scheduler->changed.notify_all();
    if (thread.joinable()) thread.join();
    idle.notify_all();
  }
};

Result<Driver> Driver::start(Scheduler& scheduler) noexcept {
  return detail::guard([&]() -> Result<Driver> {
    if (scheduler.state_ == nullptr) return detail::empty_handle("Scheduler");
    auto state = std::make_unique<State>();
    state->scheduler = scheduler.state_;
    {
      const Lock lock(state->scheduler->mutex);
      ++state->scheduler->drivers;
    }
    state->thread = std::thread(&State::work, state.get());
    return Driver(std::move(state));
  });
}

Driver::Driver(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Driver::Driver() noexcept = default;
Driver::Driver(Driver&&) noexcept = default;
Driver& Driver::operator=(Driver&&) noexcept = default;
Driver::~Driver() = default;

void Driver::wait_until_idle() noexcept {
  if (state_ == nullptr) return;
  Lock lock(state_->scheduler->mutex);
  const Scheduler::State& s = *state_->scheduler;
  state_->idle.wait(lock, [&] {
    return state_->is_stopping || (state_->is_idle && s.inbox.empty() && s.waiting_now == 0 && s.running_now == 0);
  });
}

void Driver::stop() noexcept {
  if (state_ != nullptr) state_->stop();
}

}  // namespace tessera
