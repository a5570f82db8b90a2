#include "scheduler/requests/requests.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/requests/inbox.hpp"

namespace tessera::detail {
namespace {

template <class Wanted>
std::vector<ActivePtr> take_if(std::vector<ActivePtr>& list, Wanted&& wanted) {
  std::vector<ActivePtr> taken;
  taken.reserve(list.size());  // so that push_back() cannot throw and lose a request
  std::size_t kept = 0;
  for (ActivePtr& active : list) {
    if (wanted(*active)) taken.push_back(std::move(active));
    else list[kept++] = std::move(active);
  }
  list.resize(kept);
  return taken;
}

}  // namespace

Wish wish_of(const Active& active) {
  const RequestHandle::State& request = *active.request;
  const std::unique_lock<std::mutex> lock(request.mutex);
  if (request.is_cancelled || request.has_failed || active.wanted.generate.stop.stop_requested()) return Wish::stop;
  return request.holds_back() ? Wish::hold_back : Wish::go_on;
}

void Requests::insert_by_order(List& list, ActivePtr active) {
  const auto at = std::ranges::upper_bound(list, active->order(), {}, [](const ActivePtr& one) { return one->order(); });
  list.insert(at, std::move(active));
}

void Requests::make_room_for_step(std::size_t parts, std::size_t preempted) {
  admitted_.reserve(parts);
  running_.reserve(running_.size() + parts);
  waiting_.make_room(preempted + parts);
}

void Requests::run(ActivePtr active) {
  active->standing = Standing::running;
  insert_by_order(running_, std::move(active));
}

void Requests::wait(ActivePtr active) {
  if (active->standing == Standing::running || active->standing == Standing::held_back) active->standing = Standing::starved;
  waiting_.add(std::move(active));
}

void Requests::hold_back(ActivePtr active) {
  if (active->standing == Standing::running || active->standing == Standing::starved) active->standing = Standing::held_back;
  insert_by_order(held_back_, std::move(active));
}

void Requests::run_behind(std::size_t index, std::vector<ActivePtr> samples) {
  for (const ActivePtr& sample : samples) sample->standing = Standing::running;
  running_.insert(running_.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::make_move_iterator(samples.begin()),
                  std::make_move_iterator(samples.end()));
}

ActivePtr Requests::take_running(const Active& active) noexcept {
  const auto at = std::ranges::find(running_, &active, &ActivePtr::get);
  ActivePtr own = std::move(*at);
  running_.erase(at);
  return own;
}

Active& Requests::admit(std::size_t i) {
  admitted_.push_back(waiting_.lift(i));
  return *admitted_.back();
}

ActivePtr Requests::lift_last_admitted() noexcept {
  ActivePtr last = std::move(admitted_.back());
  admitted_.pop_back();
  return last;
}

void Requests::run_admitted() {
  for (ActivePtr& active : admitted_) run(std::move(active));
  admitted_.clear();
}

void Requests::close_gaps() noexcept {
  std::erase(running_, nullptr);
  std::erase(held_back_, nullptr);
  waiting_.close_gaps();
}

void Requests::apply_wishes(const Inbox& inbox, const std::function<void(Active&)>& stop) {
  // Two passes: if a sample ends with an error in the first pass, the request's other samples stop in the second pass.
  for (int i = 0; i < 2 && wishes_seen_ != inbox.wishes(); ++i) {
    // First reserves memory for all requests in each list, so that no move can fail.
    waiting_.make_room(held_back_.size());
    const std::size_t all = running_.size() + held_back_.size() + waiting_.size();
    running_.reserve(all);
    held_back_.reserve(all);
    wishes_seen_ = inbox.wishes();  // read before the requests, so that the next pass sees a wish that changes meanwhile
    for (ActivePtr& active : take_if(held_back_, [](const Active& one) { return wish_of(one) != Wish::hold_back; })) {
      if (wish_of(*active) == Wish::stop) stop(*active);
      else if (active->standing == Standing::held_back) run(std::move(active));
      else wait(std::move(active));
    }
    const auto leaves = [](const Active& one) { return wish_of(one) != Wish::go_on; };
    const auto let_go = [&](std::vector<ActivePtr> left) {
      for (ActivePtr& active : left) {
        if (wish_of(*active) == Wish::stop) stop(*active);
        else hold_back(std::move(active));
      }
    };
    let_go(take_if(running_, leaves));
    let_go(waiting_.take_if(leaves));
  }
}

void Requests::clear() noexcept {
  running_.clear();
  held_back_.clear();
  waiting_ = {};
}

}  // namespace tessera::detail
