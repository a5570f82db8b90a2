// Computes identical questions that arrive together once: the first one is the leader, the others wait for its answer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "requests/answer.hpp"

namespace gateway {

class Flights {
  struct Flight {
    bool over = false;
    bool can_be_led_again = false;  // the leader ended without land()
    std::optional<Answer> answer;   // nullopt: there is no answer to share
  };

 public:
  // The leader's handle while it computes the answer. land(answer) hands the answer to the waiting callers. land(nullopt) says that there
  // is no answer to share: then all waiting callers compute for themselves, at the same time. If a Lead is destroyed without land(), one of
  // the waiting callers becomes the leader.
  class Lead {
   public:
    Lead(Flights* flights, std::string key) : flights_(flights), key_(std::move(key)) {}
    Lead(Lead&& other) noexcept : flights_(std::exchange(other.flights_, nullptr)), key_(std::move(other.key_)) {}
    Lead& operator=(Lead&&) = delete;
    ~Lead() {
      if (flights_ != nullptr) flights_->finish(key_, std::nullopt, true);
    }
    void land(std::optional<Answer> answer) {
      if (flights_ != nullptr) std::exchange(flights_, nullptr)->finish(key_, std::move(answer), false);
    }

   private:
    Flights* flights_;
    std::string key_;
  };

  struct Joined {
    std::optional<Lead> lead;      // this caller computes
    std::optional<Answer> answer;  // another caller has computed
  };
  // Joins the callers that ask `key`. If no caller computes `key` yet, returns a lead at once: this caller is the leader. If a caller does,
  // waits for its answer and returns the answer. Returns neither a lead nor an answer in two cases: the leader has no answer to share, or
  // is_over() returned true. `is_over` is called ten times a second during the wait, to end it (for example because the client has left).
  // `before_wait` is called before a wait begins, to free memory that the caller does not need while it waits.
  template <class IsOver, class BeforeWait>
  [[nodiscard]] Joined join(const std::string& key, IsOver is_over, BeforeWait before_wait) {
    std::unique_lock lock(mutex_);
    const auto [place, is_new] = flights_.try_emplace(key, nullptr);
    if (is_new) {
      place->second = std::make_shared<Flight>();
      return {.lead = Lead(this, key), .answer = {}};
    }
    const std::shared_ptr<Flight> flight = place->second;
    lock.unlock();
    before_wait();
    lock.lock();
    while (!flight->over && !is_over()) changed_.wait_for(lock, std::chrono::milliseconds(100));
    if (!flight->over || !flight->can_be_led_again) return {.lead = {}, .answer = flight->answer};
    lock.unlock();
    return join(key, is_over, before_wait);
  }
  template <class IsOver>
  [[nodiscard]] Joined join(const std::string& key, IsOver is_over) {
    return join(key, is_over, [] {});
  }

 private:
  void finish(const std::string& key, std::optional<Answer> answer, bool can_be_led_again) {
    {
      const std::lock_guard lock(mutex_);
      const auto place = flights_.find(key);
      place->second->over = true;
      place->second->can_be_led_again = can_be_led_again;
      place->second->answer = std::move(answer);
      flights_.erase(place);
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Flight>> flights_;
};

}  // namespace gateway
