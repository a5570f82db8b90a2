// What a request's handle and its scheduler share.
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
    std::optional<Session> session;  // given back when the request has ended
  };

  // --- What a step looks at.
  std::size_t max_unread = 0;
  std::function<void(const RequestPiece&)> on_piece;  // the driving thread's
  std::function<void()> on_ready;                     // likewise
  bool tells_progress = false;

  mutable std::mutex mutex;             // of what follows down to `beams`; taken behind the scheduler's step_mutex, never before
  std::condition_variable changed;      // a piece, or the end
  std::deque<RequestPiece> unread;
  std::vector<Sample> samples;
  RequestState phase = RequestState::waiting;
  std::uint32_t samples_left = 0;
  bool is_cancelled = false, is_paused = false, has_failed = false;
  bool awaits_news = true;              // its reader has found nothing since it was told
  bool is_to_be_told = false;           // its reader: it is in a list of Delivery's
  std::shared_ptr<State> told_after;    // the next one in that list
  RequestFigures figures;
  // --- The rest.
  std::optional<Error> error;           // that it failed with
  std::vector<Beam> beams;              // what a search has found
  std::shared_ptr<Scheduler::State> scheduler;
  std::uint64_t id = 0;
  bool keeps_sessions = false;
  std::optional<std::stop_callback<WakeScheduler>> on_stop;  // of the host's own stop token, if it gave one

  // The first error is the one that is given; without memory for its text it says so.
  void set_error(const Error& first) noexcept {
    if (!error) {
      const Status kept = detail::guard([&]() -> Status { return error = first, Status(); });
      if (!kept) error = detail::out_of_memory_error();
    }
    has_failed = true;
  }
  // Whether no more pieces come as long as the reader does not resume it.
  [[nodiscard]] bool waits_for_nobody() const noexcept { return is_paused || phase == RequestState::ended; }
  // Whether its reader is to read, or to resume it, before it is computed on.
  [[nodiscard]] bool holds_back() const noexcept { return is_paused || unread.size() >= max_unread; }
};

}  // namespace tessera
