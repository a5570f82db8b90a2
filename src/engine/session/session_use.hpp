// Guards the use of a session: one call may change it, or any number of calls may read it. Every other call gets an error at once. A
// SessionUse outlives its session, so that a Generation can find out that the session was destroyed.
#pragma once

#include <atomic>

#include <tessera/core/result.hpp>

#include "core/error.hpp"

namespace tessera::detail {

class SessionUse {
 public:
  // Reserves the session for one generation, from the generation's first call to its end (release()). No other call may change the
  // session in that time, even between the generation's calls. Error: invalid_state, another generation has claimed the session.
  Status claim(const void* generation) noexcept {
    const void* nobody = nullptr;
    if (generation_.compare_exchange_strong(nobody, generation)) return {};
    return generating();
  }
  void release(const void* generation) noexcept { generation_.compare_exchange_strong(generation, nullptr); }
  void session_ends() noexcept { ended_ = true; }

 private:
  friend class Changing;
  friend class Reading;
  [[nodiscard]] static Error in_use() noexcept {
    return make_error(ErrorCode::invalid_state,
                      "the session is in use, by another thread or by the call whose callback this is: a session is used "
                      "by one at a time");
  }
  [[nodiscard]] static Error generating() noexcept {
    return make_error(ErrorCode::invalid_state,
                      "a Generation of this session has not ended: finish it or destroy it first");
  }

  std::atomic<int> users_ = 0;  // -1: a call changes the session; otherwise the number of calls that read it
  std::atomic<const void*> generation_ = nullptr;
  std::atomic<bool> ended_ = false;
};

// A scope in which one call may change the session. Check status() first: if the session is in use, status() is an error.
class Changing {
 public:
  // `generation` is the generation that makes the call; nullptr for every other call.
  explicit Changing(SessionUse& use, const void* generation = nullptr) noexcept {
    int nobody = 0;
    if (use.ended_) {
      status_ = make_error(ErrorCode::invalid_state, "the session of this Generation is gone");
    } else if (!use.users_.compare_exchange_strong(nobody, -1)) {
      status_ = SessionUse::in_use();
    } else if (use.generation_ != generation) {
      use.users_ = 0;
      status_ = SessionUse::generating();
    } else {
      use_ = &use;
    }
  }
  Changing(Changing&& other) noexcept : use_(other.use_), status_(std::move(other.status_)) { other.use_ = nullptr; }
  Changing& operator=(Changing&&) = delete;
  ~Changing() {
    if (use_ != nullptr) use_->users_ = 0;
  }
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  SessionUse* use_ = nullptr;
  Status status_;
};

// A scope in which one call only reads the session. Check status() first: if another call changes the session, status() is an error.
class Reading {
 public:
  explicit Reading(SessionUse& use) noexcept {
    for (int users = use.users_; users >= 0;) {
      if (!use.users_.compare_exchange_weak(users, users + 1)) continue;
      use_ = &use;
      return;
    }
    status_ = SessionUse::in_use();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() {
    if (use_ != nullptr) --use_->users_;
  }
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  SessionUse* use_ = nullptr;
  Status status_;
};

}  // namespace tessera::detail
