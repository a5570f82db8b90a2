// The thread that drives a scheduler.
#include <chrono>
#include <cmath>
#include <thread>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using Lock = std::unique_lock<std::mutex>;

struct [[gnu::visibility("hidden")]] Driver::State {
  std::shared_ptr<Scheduler::State> scheduler;
  std::condition_variable rest;
  // Guarded by the scheduler's mutex. rests: the last step has found nothing to do, and nothing comes by itself.
  bool is_stopping = false, rests = false;
  std::thread::id id;
  std::mutex ending;  // guards `thread`
  std::thread thread;

  void work() noexcept {
    for (;;) {
      {
        const Lock lock(scheduler->mutex);
        if (is_stopping) return;
        id = std::this_thread::get_id();
        rests = false;
      }
      const Result<bool> more = detail::guard([&] { return scheduler->step(); });
      Lock lock(scheduler->mutex);
      if (is_stopping) return;
      if ((more && *more) || scheduler->has_news) continue;
      // An injected clock says nothing about how long to sleep: look again soon.
      const double wake = more ? scheduler->wake_time : 0.0;  // a step that failed is tried again
      rests = std::isinf(wake) || left() == 0;
      if (rests) rest.notify_all();
      const auto news = [&] { return is_stopping || scheduler->has_news; };
      if (rests) scheduler->changed.wait(lock, news);
      else scheduler->changed.wait_for(lock, std::chrono::milliseconds(5), news);
    }
  }

  // Requests that have not ended.
  [[nodiscard]] std::size_t left() const noexcept { return scheduler->inbox.size() + scheduler->waiting_now + scheduler->running_now; }

  Status wait() {
    Lock lock(scheduler->mutex);
    if (id == std::this_thread::get_id()) {
      return detail::make_error(ErrorCode::invalid_state,
                                "wait_until_idle() from a callback of the driver's own thread would wait for itself: call it from another thread");
    }
    rest.wait(lock, [&] { return is_stopping || (rests && !scheduler->has_news && scheduler->inbox.empty()); });
    if (left() == 0) return {};
    if (is_stopping) {
      return detail::make_error(ErrorCode::invalid_state, "the driver was stopped before {} requests had ended: start another one", left());
    }
    return detail::make_error(ErrorCode::busy,
                              "{} requests are paused, or have {} pieces that nobody has read: resume or read them, and call again", left(),
                              scheduler->options.max_unread);
  }

  void stop() noexcept {
    bool is_own_thread = false;
    {
      const Lock lock(scheduler->mutex);
      if (!std::exchange(is_stopping, true)) --scheduler->drivers;
      is_own_thread = id == std::this_thread::get_id();
    }
    scheduler->changed.notify_all();
    rest.notify_all();
    Lock lock(ending, std::defer_lock);
    if (!is_own_thread) lock.lock();
    else if (!lock.try_lock()) return;  // another thread waits for this one
    if (!thread.joinable()) return;
    if (is_own_thread) thread.detach();
    else thread.join();
  }
};

Result<Driver> Driver::start(Scheduler& scheduler) noexcept {
  return detail::guard([&]() -> Result<Driver> {
    if (scheduler.state_ == nullptr) return detail::empty_handle("Scheduler");
    auto state = std::make_shared<State>();
    state->scheduler = scheduler.state_;
    const Lock lock(scheduler.state_->mutex);  // the thread begins when it is counted
    state->thread = std::thread([state] { state->work(); });
    ++scheduler.state_->drivers;
    return Driver(std::move(state));
  });
}

Driver::Driver(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Driver::Driver() noexcept = default;
Driver::Driver(Driver&&) noexcept = default;
Driver& Driver::operator=(Driver&& other) noexcept {
  if (this != &other) {
    stop();
    state_ = std::move(other.state_);
  }
  return *this;
}
Driver::~Driver() { stop(); }

Status Driver::wait_until_idle() noexcept {
  return detail::guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("Driver");
    return state_->wait();
  });
}

void Driver::stop() noexcept {
  if (state_ != nullptr) state_->stop();
}

}  // namespace tessera
