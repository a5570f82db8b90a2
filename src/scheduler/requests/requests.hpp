// All requests that the steps know, each in one list. Used by the driving thread, under the scheduler's step_mutex_.
//
//   list       Active::standing of its requests                                      order
//   waiting    fresh, starved, suspended or given_up                                 none
//   admitted   on the way from waiting to running, within a step: as either          of admission
//   running    running                                                               of submission
//   held back  held_back; without pages as in `waiting`                              of submission
//
// make_room_for_step() and make_room_to_run() allocate room in the lists beforehand, so no move fails and no request is lost
// between two lists. A request that is lifted leaves a gap (nullptr) until close_gaps().
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "scheduler/requests/waiting.hpp"

namespace tessera::detail {

class Inbox;

// The wish of a request's host. stop: the request is cancelled or has failed. hold_back: it is paused, or its pieces are not read.
enum class Wish { go_on, hold_back, stop };
[[nodiscard]] Wish wish_of(const Active& active);

class Requests {
 public:
  [[nodiscard]] std::span<const ActivePtr> running() const noexcept { return running_; }
  [[nodiscard]] std::span<const ActivePtr> held_back() const noexcept { return held_back_; }
  [[nodiscard]] std::span<const ActivePtr> admitted() const noexcept { return admitted_; }
  [[nodiscard]] Waiting& waiting() noexcept { return waiting_; }
  [[nodiscard]] const Waiting& waiting() const noexcept { return waiting_; }

  // Calls fn(Active&) for each request.
  template <class Fn>
  void each(Fn&& fn) const {
    for (const auto list : {running(), waiting_.requests(), held_back(), admitted()}) {
      for (const ActivePtr& active : list) {
        if (active != nullptr) fn(*active);
      }
    }
  }

  // Makes room to admit `parts` requests and to preempt `preempted` requests. Throws bad_alloc; then no request has moved.
  void make_room_for_step(std::size_t parts, std::size_t preempted);
  // Makes room for `n` more running requests.
  void make_room_to_run(std::size_t n) { running_.reserve(running_.size() + n); }

  // Places a request that is in no list.
  void run(ActivePtr active);   // the request must have its pages
  void wait(ActivePtr active);
  // Puts samples right behind the running request that they were forked from. Precondition: make_room_to_run().
  void run_behind(std::size_t index, std::vector<ActivePtr> samples);

  // Takes a request out of its list.
  [[nodiscard]] ActivePtr lift_running(std::size_t i) noexcept { return std::move(running_[i]); }
  [[nodiscard]] ActivePtr take_running(const Active& active) noexcept;

  // Moves a waiting request to the admitted ones.
  Active& admit(std::size_t i);
  [[nodiscard]] ActivePtr lift_last_admitted() noexcept;
  // Moves the admitted requests to the running ones.
  void run_admitted();
  void close_gaps() noexcept;

  // Moves requests as their wishes say. Takes requests that are to stop out of their lists, and calls `stop` for each. Moves other requests
  // to the held-back list or out of it. If no wish has changed, as in most steps, no request is looked at. Throws bad_alloc; then no
  // request is lost.
  void apply_wishes(const Inbox& inbox, const std::function<void(Active&)>& stop);
  void clear() noexcept;

 private:
  using List = std::vector<ActivePtr>;
  static void insert_by_order(List& list, ActivePtr active);
  void hold_back(ActivePtr active);

  List running_, held_back_, admitted_;
  Waiting waiting_;
  std::uint64_t wishes_seen_ = 0;
};

}  // namespace tessera::detail
