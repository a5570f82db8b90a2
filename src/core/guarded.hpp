// A value with the lock that guards it. The value can be reached only through with(), which holds the lock.
#pragma once

#include <mutex>
#include <utility>

namespace tessera::detail {

template <class T>
class Guarded {
 public:
  template <class... Args>
  explicit Guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // Runs fn(value) while the lock is held. `fn` must take no other lock.
  template <class Fn>
  decltype(auto) with(Fn&& fn) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::forward<Fn>(fn)(value_);
  }

 private:
  std::mutex mutex_;
  T value_;
};

}  // namespace tessera::detail
