// The requests that wait for one model.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "api_error.hpp"
#include "models/model_lease.hpp"

namespace server {

// A request that waits for its model. Exactly one of ready() and failed() is called, once, on a thread that must not be blocked.
struct ModelWait {
  std::function<bool()> gone;                    // returns whether the client has left
  std::function<void(ModelLease)> ready;
  std::function<void(const ApiError&)> failed;   // gets the error; status 499: the client has left
};

// The requests that wait for one model. The functions below must be called while a mutex of the owner is locked. Because of that, the only
// function of a request that they call is gone(). ready() and failed() may take long: calls of these two are added to the list `calls`, and
// the owner makes the calls of the list after it has released the mutex.
class WaitLine {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Calls = std::vector<std::function<void()>>;

  [[nodiscard]] std::size_t size() const noexcept { return line_.size(); }
  [[nodiscard]] bool empty() const noexcept { return line_.empty(); }

  void add(ModelWait wait, std::optional<double> keep_alive, Time deadline) { line_.push_back({std::move(wait), keep_alive, deadline}); }
  // Drops the requests whose clients have left, and the requests whose deadline has passed; the latter get the error late(). Returns the
  // earliest deadline of the requests that still wait; nullopt if none waits.
  std::optional<Time> drop(Time now, const std::function<ApiError()>& late, Calls& calls);
  // Drops all requests with an error.
  void refuse(const ApiError& error, Calls& calls);
  // Gives a lease to each request, in order. Returns the keep_alive of the last request that has one.
  std::optional<double> grant(const std::function<ModelLease()>& lease, Calls& calls);

 private:
  struct Waiting {
    ModelWait wait;
    std::optional<double> keep_alive;  // seconds
    Time deadline;
  };
  std::deque<Waiting> line_;
};

}  // namespace server
