// Gives threads access to the backend, which runs one step at a time, in the order in which the threads asked. A thread asks again before
// each step. So while one thread computes the many steps of a long prompt, other threads get their turns between these steps.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace tessera::detail {

class FairQueue {
 public:
  // Waits for this thread's turn. Returns false if a stop was requested first.
  bool enter(const std::stop_token& stop) {
    Waiter self;
    std::unique_lock lock(mutex_);
    if (!busy_ && first_ == nullptr) {
      busy_ = true;
      return true;
    }
    (last_ != nullptr ? last_->next : first_) = &self;
    last_ = &self;
    if (changed_.wait(lock, stop, [&] { return !busy_ && first_ == &self; })) {
      first_ = self.next;
      if (first_ == nullptr) last_ = nullptr;
      busy_ = true;
      return true;
    }
    remove(self);
    changed_.notify_all();
    return false;
  }

  void leave() {
    {
      const std::lock_guard lock(mutex_);
      busy_ = false;
    }
    changed_.notify_all();
  }

 private:
  struct Waiter {
    Waiter* next = nullptr;
  };

  void remove(const Waiter& waiter) noexcept {
    Waiter* before = nullptr;
    for (Waiter* at = first_; at != nullptr; before = at, at = at->next) {
      if (at != &waiter) continue;
      (before != nullptr ? before->next : first_) = at->next;
      if (last_ == at) last_ = before;
      return;
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool busy_ = false;
  Waiter* first_ = nullptr;  // waiters live on the stacks of their threads
  Waiter* last_ = nullptr;
};

// Waits for a turn, and holds it until the end of the scope. mine() is false if a stop was requested first.
class Turn {
 public:
  Turn(FairQueue& queue, const std::stop_token& stop) : queue_(queue), mine_(queue.enter(stop)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (mine_) queue_.leave();
  }
  [[nodiscard]] bool mine() const noexcept { return mine_; }

 private:
  FairQueue& queue_;
  bool mine_;
};

}  // namespace tessera::detail
