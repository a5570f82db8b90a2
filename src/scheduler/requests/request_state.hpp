// The state that a RequestHandle shares with its scheduler.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include <tessera/scheduler/scheduler.hpp>

#include "core/guard.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] RequestHandle::State {
  struct WakeScheduler {
    Scheduler::State* scheduler;
    void operator()() const noexcept;
  };
  struct Sample {
    FinishReason finish = FinishReason::none;
    std::optional<Session> session;  // the session that take_session() returns after the request's end
  };

  // --- Members that every step reads, next to each other in memory.
  std::size_t max_unread = 0;
  std::function<void(const RequestPiece&)> on_piece;  // called by the driving thread
  std::function<void()> on_ready;                     // called by the driving thread
  bool tells_progress = false;

  mutable std::mutex mutex;             // guards the members up to `beams`. Never lock the scheduler's step_mutex_ while holding it
  std::condition_variable changed;      // notified when a piece comes or the request ends
  std::deque<RequestPiece> unread;
  std::vector<Sample> samples;
  RequestState phase = RequestState::waiting;
  std::uint32_t samples_left = 0;
  bool is_cancelled = false, is_paused = false, has_failed = false;
  // true: the reader has found no piece since on_ready was last called, so on_ready must be called at the next piece.
  bool awaits_news = true;
  bool is_to_be_told = false;           // true: the request is in the list Delivery::Told::readers
  std::shared_ptr<State> told_after;    // the next request in that list
  RequestFigures figures;
  // --- Members that few steps read.
  std::optional<Error> error;  // the first error of the request
  std::optional<Error>
      not_driven;  // the error with which the last next() stopped driving the scheduler; the request goes on
  std::uint32_t failed_steps =
      0;  // number of consecutive failed steps in next(); used only by the reader's thread
  std::vector<Beam> beams;  // results of a beam search
  std::shared_ptr<Scheduler::State> scheduler;
  std::uint64_t id = 0;
  bool keeps_sessions = false;
  std::optional<std::stop_callback<WakeScheduler>> on_stop;  // set if the request has a stop token

  // Fails the request with the error `first`, unless it already has an error. If there is no memory to copy the error's text, the error
  // becomes out_of_memory.
  void set_error(const Error& first) noexcept {
    if (!error) {
      const Status kept = detail::guard([&]() -> Status { return error = first, Status(); });
      if (!kept) error = detail::out_of_memory_error();
    }
    has_failed = true;
  }
  // Returns whether waiting for a piece is useless: the request is paused or has ended.
  [[nodiscard]] bool waits_for_nobody() const noexcept { return is_paused || phase == RequestState::ended; }
  // Returns whether the request gets no rows until its reader acts: it is paused, or has the largest allowed number of unread pieces.
  [[nodiscard]] bool holds_back() const noexcept { return is_paused || unread.size() >= max_unread; }
};

}  // namespace tessera
