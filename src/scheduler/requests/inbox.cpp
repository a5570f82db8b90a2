#include "scheduler/requests/inbox.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace tessera::detail {

Status Inbox::put(ActivePtr active) {
  PlannedRequest& planned = active->planned;
  {
    const Lock lock(mutex_);
    if (is_draining_ || is_closed_) return make_error(ErrorCode::invalid_state, "the scheduler is draining: it takes no more requests");
    // `places` is the number of queued requests that the next step will admit; they do not count as waiting. If requests were still waiting
    // after the last step, `places` is 0, because the waiting requests are admitted first.
    const std::size_t places = waiting_ == 0 && limits_.max_running > running_ ? limits_.max_running - running_ : 0;
    const std::size_t before_it = not_running();
    if (before_it >= places && before_it - places >= limits_.max_waiting) {
      if (before_it == places) {  // max_waiting is 0
        return make_error(ErrorCode::busy, "{} requests at once are served, and none may wait (max_waiting is 0); try again in about {:.1f} s",
                          limits_.max_running, std::max(outlook_.wait, 0.1));
      }
      return make_error(ErrorCode::busy, "{} requests wait already; try again in about {:.1f} s", before_it - places,
                        std::max(outlook_.wait, 0.1));
    }
    if (active->has_deadline && active->wanted.if_late == IfLate::refuse) {
      const double takes = outlook_.wait + costs_.predict({.rows = static_cast<std::uint32_t>(planned.prompt), .outputs = 1}) +
                           static_cast<double>(planned.expected) * outlook_.token;
      if (takes > active->wanted.deadline) {
        return make_error(ErrorCode::too_late, "it would take about {:.1f} s, and its deadline is {:.1f} s from now", takes,
                          active->wanted.deadline);
      }
    }
    planned.id = planned.order = active->request->id = submitted_;
    queue_.push_back(std::move(active));  // memory for the request is allocated, so nothing below can fail
    ++submitted_;
    has_news_ = true;
  }
  changed_.notify_all();
  return {};
}

void Inbox::cancel(std::uint64_t request) {
  {
    const Lock lock(mutex_);
    cancelled_.push_back(request);
  }
  wake();
}

void Inbox::wake() noexcept {
  look_again();
  {
    const Lock lock(mutex_);
    has_news_ = true;
  }
  changed_.notify_all();
}

std::size_t Inbox::begin_step(std::vector<std::uint64_t>& cancelled) noexcept {
  const Lock lock(mutex_);
  has_news_ = false;
  if (cancelled.empty()) cancelled.swap(cancelled_);
  return queue_.size();
}

Active* Inbox::first() const noexcept {
  const Lock lock(mutex_);
  return queue_.empty() ? nullptr : queue_.front().get();
}

ActivePtr Inbox::take() noexcept {
  const Lock lock(mutex_);
  ActivePtr first = std::move(queue_.front());
  queue_.pop_front();
  ++taken_;
  return first;
}

void Inbox::set_counts(std::size_t waiting, std::size_t running) noexcept {
  const Lock lock(mutex_);
  waiting_ = waiting;
  running_ = running;
  taken_ = 0;
}

bool Inbox::set_outlook(const Outlook& outlook, const CostModel& costs) noexcept {
  const Lock lock(mutex_);
  outlook_ = outlook;
  costs_ = costs;
  return !queue_.empty();
}

void Inbox::remove_driver() noexcept {
  {
    const Lock lock(mutex_);
    --drivers_;
  }
  changed_.notify_all();
}

void Inbox::wait_for_news(const std::atomic<bool>& is_stopping, std::optional<std::chrono::milliseconds> time) {
  Lock lock(mutex_);
  const auto news = [&] { return is_stopping || has_news_; };
  if (time) changed_.wait_for(lock, *time, news);
  else changed_.wait(lock, news);
}

}  // namespace tessera::detail
