// The inbox passes requests, cancellations and wishes from any thread to the driving thread, which runs the steps. A wish is that a
// request stop, be held back, or go on. Each step takes them out, and leaves its outlook: the times that it expects. With the outlook
// put() can refuse requests without waiting for a step. News is anything for which a sleeping driver must wake up. `mutex_` guards all
// members but `wishes_`, which is atomic.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "scheduler/requests/active.hpp"

namespace tessera::detail {

class Inbox {
  using Lock = std::unique_lock<std::mutex>;
  template <class Fn>
  auto locked(Fn&& fn) const noexcept {
    const Lock lock(mutex_);
    return fn();
  }

 public:
  // The times that the last step expects.
  struct Outlook {
    double wait = 0.0;       // seconds until all requests now in the scheduler have been computed
    double token = 0.0;      // seconds from one token of a request to its next
    double wake_time = 0.0;  // when the next step has something to do, if no news comes before
  };
  struct Limits {
    std::size_t max_running, max_waiting;
  };

  Inbox(const Limits& limits, const CostModel& costs) : limits_(limits), costs_(costs) {}

  // --- For callers, on any thread.
  // Gives the request its id and puts it at the end of the queue. Errors: invalid_state, the scheduler is draining; busy, too many
  // requests wait; too_late, the request has IfLate::refuse and would miss its deadline. May throw bad_alloc, and then the request is not
  // in the queue.
  Status put(ActivePtr active);
  void cancel(std::uint64_t request);  // may throw bad_alloc
  void drain() noexcept { locked([this] { is_draining_ = true; }); }
  // Makes the next apply_wishes() check every request's wish. Call it after a wish (to stop, to be held back, to go on) has changed.
  void look_again() noexcept { wishes_.fetch_add(1); }
  // Calls look_again(), and wakes the drivers.
  void wake() noexcept;

  struct Counts {
    std::uint64_t submitted = 0;
    std::size_t running = 0, waiting = 0;
  };
  [[nodiscard]] Counts counts() const noexcept {
    return locked([this] { return Counts{.submitted = submitted_, .running = running_, .waiting = not_running()}; });
  }
  [[nodiscard]] bool idle() const noexcept { return locked([this] { return all() == 0; }); }
  [[nodiscard]] Outlook outlook() const noexcept { return locked([this] { return outlook_; }); }

  // --- For the driving thread.
  // Returns how often look_again() was called. If the number has changed, some request's wish may have changed.
  [[nodiscard]] std::uint64_t wishes() const noexcept { return wishes_.load(); }
  // Begins a step. Anything that arrives from now on is news for the next step. If `cancelled` is empty, moves the ids of cancelled
  // requests into it. Returns how many requests are in the queue.
  std::size_t begin_step(std::vector<std::uint64_t>& cancelled) noexcept;
  // Returns the first request in the queue without taking it out; nullptr if the queue is empty.
  [[nodiscard]] Active* first() const noexcept;
  [[nodiscard]] ActivePtr take() noexcept;
  void set_counts(std::size_t waiting, std::size_t running) noexcept;  // the counts must include all requests that were taken
  // Stores the outlook and the costs after a step. Returns whether more requests have arrived. `costs` must have as many widths as the
  // costs that the inbox was made with, so that copying allocates nothing.
  bool set_outlook(const Outlook& outlook, const CostModel& costs) noexcept;
  void close() noexcept { locked([this] { is_closed_ = true; }); }  // makes put() fail from now on

  // --- For drivers.
  void add_driver() noexcept { locked([this] { ++drivers_; }); }
  void remove_driver() noexcept;  // wakes all threads in wait_for_news()
  [[nodiscard]] bool has_driver() const noexcept { return locked([this] { return drivers_ > 0; }); }
  [[nodiscard]] bool has_news() const noexcept { return locked([this] { return has_news_; }); }
  // Waits until there is news, until `is_stopping`, or until `time` has passed.
  void wait_for_news(const std::atomic<bool>& is_stopping, std::optional<std::chrono::milliseconds> time);
  // Returns whether neither news nor a request has come since the last step began.
  [[nodiscard]] bool is_quiet() const noexcept { return locked([this] { return !has_news_ && queue_.empty(); }); }
  // Returns how many requests have not ended.
  [[nodiscard]] std::size_t left() const noexcept { return locked([this] { return all(); }); }

 private:
  // Returns how many requests wait. Requests that the present step has taken from the queue count as waiting until set_counts().
  [[nodiscard]] std::size_t not_running() const noexcept { return queue_.size() + taken_ + waiting_; }
  [[nodiscard]] std::size_t all() const noexcept { return not_running() + running_; }

  const Limits limits_;
  std::atomic<std::uint64_t> wishes_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;        // notified when there is news
  std::deque<ActivePtr> queue_;            // submitted requests that no step has taken yet
  std::vector<std::uint64_t> cancelled_;   // ids of cancelled requests
  std::uint64_t submitted_ = 0;
  std::size_t waiting_ = 0, running_ = 0;  // numbers of requests after the last step
  std::size_t taken_ = 0;                  // number of requests that the present step has taken; the two counts do not include them yet
  bool is_draining_ = false, is_closed_ = false, has_news_ = false;
  int drivers_ = 0;
  Outlook outlook_;
  CostModel costs_;                        // copy of the costs after the last step
};

}  // namespace tessera::detail
