// All requests that the scheduler's steps know. Each request is in one of four lists. Used only by the driving thread, under the
// scheduler's step_mutex_. A request is in `admitted` only within a step, on its way from waiting to running.
//
//   list       standing of its requests (Active::standing)                              order
//   waiting    fresh, starved, suspended or given_up                                    none
//   admitted   a standing of `waiting`, later `running`                                 of admission
//   running    running                                                                  of submission
//   held back  held_back; without pages: the standing that it had while waiting         of submission
//
// make_room_for_step() and make_room_to_run() allocate the memory for moves in advance, so that no move can fail and no request is lost
// between two lists. A request that is taken out of its list leaves a gap (nullptr) until close_gaps().
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "scheduler/requests/waiting.hpp"

namespace tessera::detail {

class Inbox;

// The host's wish for a request. stop: the request was cancelled or has failed. hold_back: it is paused, or nobody reads its pieces.
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

  // Reserves memory to admit `parts` and to preempt `preempted` requests. Throws bad_alloc; no request has moved then.
  void make_room_for_step(std::size_t parts, std::size_t preempted);
  // Reserves memory for `n` more running requests.
  void make_room_to_run(std::size_t n) { running_.reserve(running_.size() + n); }

  // Put a request that is in no list into the running or the waiting list.
  void run(ActivePtr active);   // the request must have its pages
  void wait(ActivePtr active);
  // Inserts samples after the running request `index`, from which they were forked. Precondition: make_room_to_run() was called.
  void run_behind(std::size_t index, std::vector<ActivePtr> samples);

  // Take a request out of the running list.
  [[nodiscard]] ActivePtr lift_running(std::size_t i) noexcept { return std::move(running_[i]); }
  [[nodiscard]] ActivePtr take_running(const Active& active) noexcept;

  // Moves waiting request i to the admitted requests.
  Active& admit(std::size_t i);
  [[nodiscard]] ActivePtr lift_last_admitted() noexcept;
  // Moves all admitted requests to the running requests.
  void run_admitted();
  void close_gaps() noexcept;

  // Moves requests between the lists according to their wishes. A request that must stop is taken out of its list, and passed to `stop`.
  // Other requests are moved into or out of the held-back list. If no wish has changed (as in most steps), looks at no request. Throws
  // bad_alloc; no request is lost then.
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
