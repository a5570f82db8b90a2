#include "models/wait_line.hpp"

#include <algorithm>
#include <utility>

namespace server {

std::optional<WaitLine::Time> WaitLine::drop(Time now, const std::function<ApiError()>& late, Calls& calls) {
  std::optional<Time> next;
  for (auto each = line_.begin(); each != line_.end();) {
    const bool has_left = each->wait.gone();
    if (!has_left && each->deadline > now) {
      next = next ? std::min(*next, each->deadline) : each->deadline;
      ++each;
      continue;
    }
    calls.push_back([failed = each->wait.failed, error = has_left ? ApiError(499, "the client went away") : late()] { failed(error); });
    each = line_.erase(each);
  }
  return next;
}

void WaitLine::refuse(const ApiError& error, Calls& calls) {
  while (!line_.empty()) {
    calls.push_back([failed = line_.front().wait.failed, error] { failed(error); });
    line_.pop_front();
  }
}

std::optional<double> WaitLine::grant(const std::function<ModelLease()>& lease, Calls& calls) {
  std::optional<double> keep_alive;
  while (!line_.empty()) {
    const Waiting& first = line_.front();
    calls.push_back([ready = first.wait.ready, held = lease()] { ready(held); });
    if (first.keep_alive) keep_alive = first.keep_alive;
    line_.pop_front();
  }
  return keep_alive;
}

}  // namespace server
