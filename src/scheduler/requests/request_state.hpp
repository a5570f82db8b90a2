// The state that a request's handle and its scheduler share.
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
    std::optional<Session> session;  // for take_session(), when the request has ended
  };

  // --- Read by every step.
  std::size_t max_unread = 0;
  std::function<void(const RequestPiece&)> on_piece;  // called by the driving thread
  std::function<void()> on_ready;                     // called by the driving thread
  bool tells_progress = false;

  mutable std::mutex mutex;             // guards the members down to `beams`; taken after the scheduler's step_mutex_, never before
  std::condition_variable changed;      // notified of a piece and of the end
  std::deque<RequestPiece> unread;
  std::vector<Sample> samples;
  RequestState phase = RequestState::waiting;
  std::uint32_t samples_left = 0;
  bool is_cancelled = false, is_paused = false, has_failed = false;
  bool awaits_news = true;              // try_next() has found no piece since on_ready was last called
  bool is_to_be_told = false;           // the request is in the list Delivery::Told::readers
  std::shared_ptr<State> told_after;    // the next request of that list
  RequestFigures figures;
  // --- The rest.
  std::optional<Error> error;           // the first error of the request
  std::vector<Beam> beams;              // results of the search
  std::shared_ptr<Scheduler::State> scheduler;
  std::uint64_t id = 0;
  bool keeps_sessions = false;
  std::optional<std::stop_callback<WakeScheduler>> on_stop;  // set if the request has a stop token

  // Fails the request. Keeps `first` unless there is an error already; without memory for its text, keeps an out_of_memory error.
  void set_error(const Error& first) noexcept {
    if (!error) {
      const Status kept = detail::guard([&]() -> Status { return error = first, Status(); });
      if (!kept) error = detail::out_of_memory_error();
    }
    has_failed = true;
  }
  // Returns whether no further piece comes, however long the reader waits: the request is paused or has ended.
  [[nodiscard]] bool waits_for_nobody() const noexcept { return is_paused || phase == RequestState::ended; }
  // Returns whether the request is computed further only when the reader reads or resumes it.
  [[nodiscard]] bool holds_back() const noexcept { return is_paused || unread.size() >= max_unread; }
};

}  // namespace tessera
