// The door between the threads that ask and the one that drives. Callers put requests, cancellations and wishes in; a step takes
// them out, and leaves behind what it expects, so that callers are refused or told to wait without a step. All members but the
// count of wishes are guarded by `mutex_`.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "scheduler/active.hpp"

namespace tessera::detail {

class Inbox {
  using Lock = std::unique_lock<std::mutex>;
  template <class Fn>
  auto locked(Fn&& fn) const noexcept {
    const Lock lock(mutex_);
    return fn();
  }

 public:
  // What the last step expects.
  struct Outlook {
    double wait = 0.0;       // seconds until the queue, as it is, has been computed
    double token = 0.0;      // seconds of a token
    double wake_time = 0.0;  // when a step has something to do again although nothing happens
  };
  struct Limits {
    std::size_t max_running, max_waiting;
  };

  Inbox(const Limits& limits, const CostModel& costs) : limits_(limits), costs_(costs) {}

  // --- Callers, on any thread.
  // Gives the request its id and its place in line. Errors: invalid_state (draining), busy (too many wait), too_late (under
  // IfLate::refuse it would not make its deadline). May throw bad_alloc; then it is not in.
  Status put(ActivePtr active);
  void cancel(std::uint64_t request);  // may throw bad_alloc
  void drain() noexcept { locked([this] { is_draining_ = true; }); }
  // The wish of a request has changed, as everybody can see by now: to stop, to be held back, to go on again.
  void look_again() noexcept { wishes_.fetch_add(1); }
  // Likewise, and a driver has something to do.
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

  // --- Whoever drives.
  [[nodiscard]] std::uint64_t wishes() const noexcept { return wishes_.load(); }
  // What comes from here on is news for another step. Moves the cancelled ids to `cancelled` if that is empty. Returns how many
  // requests have arrived.
  std::size_t begin_step(std::vector<std::uint64_t>& cancelled) noexcept;
  // The first of the requests that have arrived, which stays in; nullptr: there is none. Only take() takes it out.
  [[nodiscard]] Active* first() const noexcept;
  [[nodiscard]] ActivePtr take() noexcept;
  void set_counts(std::size_t waiting, std::size_t running) noexcept;  // and none is on its way
  // Returns whether more requests have arrived. `costs` has as many widths as those that the inbox was made with: nothing is
  // allocated.
  bool set_outlook(const Outlook& outlook, const CostModel& costs) noexcept;
  void close() noexcept { locked([this] { is_closed_ = true; }); }  // nothing more comes in

  // --- Drivers.
  void add_driver() noexcept { locked([this] { ++drivers_; }); }
  void remove_driver() noexcept;  // wakes those who wait for news
  [[nodiscard]] bool has_driver() const noexcept { return locked([this] { return drivers_ > 0; }); }
  [[nodiscard]] bool has_news() const noexcept { return locked([this] { return has_news_; }); }
  // Waits until there is news, or the driver is to stop, or the time is over.
  void wait_for_news(const std::atomic<bool>& is_stopping, std::optional<std::chrono::milliseconds> time);
  // Neither news nor a request has come since the last step.
  [[nodiscard]] bool is_quiet() const noexcept { return locked([this] { return !has_news_ && queue_.empty(); }); }
  // Requests that have not ended.
  [[nodiscard]] std::size_t left() const noexcept { return locked([this] { return all(); }); }

 private:
  // Those that the present step has taken wait as well, until it says what has become of them.
  [[nodiscard]] std::size_t not_running() const noexcept { return queue_.size() + taken_ + waiting_; }
  [[nodiscard]] std::size_t all() const noexcept { return not_running() + running_; }

  const Limits limits_;
  std::atomic<std::uint64_t> wishes_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;        // there is news
  std::deque<ActivePtr> queue_;            // submitted, and not seen by a step yet
  std::vector<std::uint64_t> cancelled_;   // ids
  std::uint64_t submitted_ = 0;
  std::size_t waiting_ = 0, running_ = 0;  // as the last step left them
  std::size_t taken_ = 0;                  // by the present step, and not counted there yet
  bool is_draining_ = false, is_closed_ = false, has_news_ = false;
  int drivers_ = 0;
  Outlook outlook_;
  CostModel costs_;                        // as the last step left them
};

}  // namespace tessera::detail
