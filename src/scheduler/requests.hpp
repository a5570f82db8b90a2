// All requests that the steps know of, each in one list. Whoever drives has them: the scheduler's step_mutex guards all of this.
//
//   waiting    fresh, starved, suspended, given_up    in no order
//   admitted   on the way from waiting to running, within a step
//   running    running                                in order of submission
//   held back  held_back; and those of `waiting` whose reader does not want them to go on
//
// A move needs room in the list it goes to: make_room() and make_room_for_step() allocate it beforehand, so no move fails and no
// request is lost on its way. A request that is lifted leaves a gap (nullptr) until close_gaps().
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "scheduler/waiting.hpp"

namespace tessera::detail {

class Inbox;

// The wish of a request's host: cancelled or failed, paused or not read, or to go on.
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

  // So many may be admitted, and so many preempted. Throws bad_alloc; then nothing has changed.
  void make_room_for_step(std::size_t parts, std::size_t preempted);
  // So many more may run().
  void make_room_to_run(std::size_t n) { running_.reserve(running_.size() + n); }

  // Places a request that is in no list.
  void run(ActivePtr active);   // it has its pages
  void wait(ActivePtr active);
  // Puts samples right behind the running request that they were forked from. There is room.
  void run_behind(std::size_t index, std::vector<ActivePtr> samples);

  // Takes a request out of its list.
  [[nodiscard]] ActivePtr lift_running(std::size_t i) noexcept { return std::move(running_[i]); }
  [[nodiscard]] ActivePtr take_running(const Active& active) noexcept;

  // Moves a waiting request to the admitted ones.
  Active& admit(std::size_t i);
  [[nodiscard]] ActivePtr lift_last_admitted() noexcept;
  // Those that are admitted run from now on.
  void run_admitted();
  void close_gaps() noexcept;

  // Takes out those that are to stop, which `stop` ends, sets aside those that are held back, and takes back those that go on.
  // Where no wish has changed, which is so in most steps, nobody is looked at. Throws bad_alloc; then all are in their lists.
  void sort_out(const Inbox& inbox, const std::function<void(Active&)>& stop);
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
