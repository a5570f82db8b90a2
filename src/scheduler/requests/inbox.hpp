// The inbox passes requests, cancellations and wishes from any thread to the driving thread, which runs the steps. A wish asks that a
// request stop, be held back, or go on. Each step takes everything out of the inbox. In return it leaves its outlook in the inbox: the
// times that it expects, for example how long a new request would wait. From the outlook, put() decides whether to refuse a request,
// without waiting for a step. *News* is anything for which a sleeping driver must wake up. `mutex_` guards all members except `wishes_`,
// which is atomic.
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
  // Times that the last step expected.
  struct Outlook {
    double wait = 0.0;       // seconds that a new request would wait before its first step
    double token = 0.0;      // seconds between two tokens of a request
    double wake_time = 0.0;  // time at which the next step has something to do, if there is no earlier news
  };
  struct Limits {
    std::size_t max_running, max_waiting;
  };

  Inbox(const Limits& limits, const CostModel& costs) : limits_(limits), costs_(costs) {}

  // --- For callers, on any thread.
  // Sets the request's id, and puts the request at the end of the queue. Errors: invalid_state, the scheduler is draining; busy, too many
  // requests wait; too_late, the request has IfLate::refuse and would miss its deadline. May throw bad_alloc; the request is then not in
  // the queue.
  Status put(ActivePtr active);
  void cancel(std::uint64_t request);  // may throw bad_alloc
  void drain() noexcept { locked([this] { is_draining_ = true; }); }
  // Makes the next apply_wishes() check the wishes of all requests. Call this after a wish has changed.
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
  // Returns how often look_again() was called. If the number has grown since apply_wishes() last read it, the wish of some request may have
  // changed.
  [[nodiscard]] std::uint64_t wishes() const noexcept { return wishes_.load(); }
  // Begins a step. Everything that arrives later is news for the next step. Moves the ids of cancelled requests into `cancelled`.
  // Exception: if `cancelled` still has ids of a step that failed, the new ids stay in the inbox. Returns the number of requests in the
  // queue.
  std::size_t begin_step(std::vector<std::uint64_t>& cancelled) noexcept;
  // Returns the first request in the queue, which stays in the queue; nullptr if the queue is empty.
  [[nodiscard]] Active* first() const noexcept;
  [[nodiscard]] ActivePtr take() noexcept;
  void set_counts(std::size_t waiting, std::size_t running) noexcept;  // both must include all requests taken from the queue
  // Stores the outlook and the costs after a step, for put(). Returns whether further requests have arrived. Precondition: `costs` stores
  // times for as many numbers of rows as the costs that the constructor got. So copying `costs` allocates nothing.
  bool set_outlook(const Outlook& outlook, const CostModel& costs) noexcept;
  void close() noexcept { locked([this] { is_closed_ = true; }); }  // from now on put() fails

  // --- For drivers.
  void add_driver() noexcept { locked([this] { ++drivers_; }); }
  void remove_driver() noexcept;  // wakes all threads in wait_for_news()
  [[nodiscard]] bool has_driver() const noexcept { return locked([this] { return drivers_ > 0; }); }
  [[nodiscard]] bool has_news() const noexcept { return locked([this] { return has_news_; }); }
  // Waits until there is news, `is_stopping` is true, or `time` has passed.
  void wait_for_news(const std::atomic<bool>& is_stopping, std::optional<std::chrono::milliseconds> time);
  // Returns whether no news and no request has arrived since the last step began.
  [[nodiscard]] bool is_quiet() const noexcept { return locked([this] { return !has_news_ && queue_.empty(); }); }
  // Returns the number of requests that have not ended.
  [[nodiscard]] std::size_t left() const noexcept { return locked([this] { return all(); }); }

 private:
  // Returns the number of waiting requests. It includes requests that the present step has taken from the queue, until set_counts().
  [[nodiscard]] std::size_t not_running() const noexcept { return queue_.size() + taken_ + waiting_; }
  [[nodiscard]] std::size_t all() const noexcept { return not_running() + running_; }

  const Limits limits_;
  std::atomic<std::uint64_t> wishes_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;        // notified when there is news
  std::deque<ActivePtr> queue_;            // submitted requests that no step has taken out yet
  std::vector<std::uint64_t> cancelled_;   // ids of cancelled requests
  std::uint64_t submitted_ = 0;
  std::size_t waiting_ = 0, running_ = 0;  // numbers of requests after the last step
  std::size_t taken_ = 0;                  // requests that the present step has taken out; not yet included in the two counts above
  bool is_draining_ = false, is_closed_ = false, has_news_ = false;
  int drivers_ = 0;
  Outlook outlook_;
  CostModel costs_;                        // copy of the costs, made after the last step
};

}  // namespace tessera::detail
