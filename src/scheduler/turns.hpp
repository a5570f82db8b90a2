// Runs the steps of a scheduler, and the work that a host does between steps, one at a time in the order of the calls.
#pragma once

#include <atomic>
#include <string_view>
#include <thread>
#include <type_traits>

#include "core/error.hpp"
#include "engine/run/fair_queue.hpp"

namespace tessera::detail {

class Turns {
 public:
  // Waits for this thread's turn, then calls fn() while no other thread has a turn. Returns the result of fn(). Error: invalid_state, the
  // thread already has a turn, so it would wait for itself forever.
  template <class Fn>
  std::invoke_result_t<Fn> take(std::string_view caller, Fn&& fn) {
    if (owner_ == std::this_thread::get_id()) {
      return make_error(ErrorCode::invalid_state, "{} was called within a step, or within the work between two: it would wait for itself", caller);
    }
    const Turn turn(queue_, {});
    const Owner owner(owner_);
    return fn();
  }

 private:
  struct Owner {
    explicit Owner(std::atomic<std::thread::id>& at) noexcept : of(at) { of = std::this_thread::get_id(); }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() { of = std::thread::id(); }
    std::atomic<std::thread::id>& of;
  };

  FairQueue queue_;
  std::atomic<std::thread::id> owner_ = std::thread::id();  // id of the thread whose turn it is
};

}  // namespace tessera::detail
