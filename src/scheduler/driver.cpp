// Driver: a thread that calls a scheduler's step() as long as there is work.
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using Lock = std::unique_lock<std::mutex>;

struct [[gnu::visibility("hidden")]] Driver::State {
  explicit State(std::shared_ptr<Scheduler::State> of) : scheduler(std::move(of)) {}

  const std::shared_ptr<Scheduler::State> scheduler;
  std::atomic<bool> is_stopping = false;
  std::mutex mutex;               // guards `rest`, `rests` and `id`; the inbox's mutex may be locked while this one is held
  std::condition_variable rest;
  bool rests = false;             // true: the last step had nothing to do, and no step has anything to do before the inbox has news
  std::thread::id id;
  std::mutex ending;              // guards `thread` while it is joined
  std::thread thread;

  void work() noexcept {
    detail::Inbox& inbox = scheduler->inbox;
    for (;;) {
      {
        const Lock lock(mutex);
        if (is_stopping) return;
        id = std::this_thread::get_id();
        rests = false;
      }
      const Result<bool> more = detail::guard([&] { return scheduler->step(); });
      if (is_stopping) return;
      if ((more && *more) || inbox.has_news()) continue;
      // There is nothing to do now, or the step failed. If no step has anything to do before the inbox has news (is_over), this thread sleeps
      // until there is news. Otherwise it sleeps for at most 5 ms and then tries again. The thread cannot sleep until wake_time, the time of
      // the next work, because wake_time is in the host's clock, which may not be real time.
      const bool is_over = (more && std::isinf(inbox.outlook().wake_time)) || inbox.left() == 0;
      if (is_over) {
        const Lock lock(mutex);
        rests = true;
        rest.notify_all();
      }
      inbox.wait_for_news(is_stopping, is_over ? std::nullopt : std::optional(std::chrono::milliseconds(5)));
    }
  }

  Status wait() {
    Lock lock(mutex);
    if (id == std::this_thread::get_id()) {
      return detail::make_error(ErrorCode::invalid_state,
                                "wait_until_idle() from a callback of the driver's own thread would wait for itself: call it from another thread");
    }
    rest.wait(lock, [&] { return is_stopping || (rests && scheduler->inbox.is_quiet()); });
    const std::size_t left = scheduler->inbox.left();
    if (left == 0) return {};
    if (is_stopping) {
      return detail::make_error(ErrorCode::invalid_state, "the driver was stopped before {} requests had ended: start another one", left);
    }
    return detail::make_error(ErrorCode::busy,
                              "{} requests are paused, or have {} pieces that nobody has read: resume or read them, and call again", left,
                              scheduler->setup.options.max_unread);
  }

  void stop() noexcept {
    bool is_own_thread = false;
    {
      const Lock lock(mutex);
      if (!is_stopping.exchange(true)) scheduler->inbox.remove_driver();
      is_own_thread = id == std::this_thread::get_id();
    }
    rest.notify_all();
    Lock lock(ending, std::defer_lock);
    if (!is_own_thread) lock.lock();
    else if (!lock.try_lock()) return;  // another thread is already joining `thread`
    if (!thread.joinable()) return;
    if (is_own_thread) thread.detach();
    else thread.join();
  }
};

Result<Driver> Driver::start(Scheduler& scheduler) noexcept {
  return detail::guard([&]() -> Result<Driver> {
    if (scheduler.state_ == nullptr) return detail::empty_handle("Scheduler");
    auto state = std::make_shared<State>(scheduler.state_);
    const Lock lock(state->mutex);  // work() waits for this mutex until add_driver() has counted the driver
    state->thread = std::thread([state] { state->work(); });
    scheduler.state_->inbox.add_driver();
    return Driver(state);
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
