// Tells hosts and readers about pieces, progress, events and ends of requests. A step notes this news under step_mutex_, and takes it out
// (Told) at its end. Callbacks run after the step, when its thread holds no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kv/kv_watch.hpp"
#include "scheduler/requests/accounts.hpp"
#include "scheduler/requests/active.hpp"
#include "scheduler/host_calls.hpp"
#include "scheduler/requests/inbox.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

class Delivery {
 public:
  // May throw bad_alloc.
  Delivery(const Setup& setup, HostCalls& host, Inbox& inbox, Accounts& accounts, EngineTime& engine_time);

  // --- Within a step.
  // Makes room for `pieces` pieces. Throws bad_alloc.
  void make_room_for_step(std::size_t pieces);
  // Notes an event. Without memory for it the event is lost.
  void tell(RequestEvent::Kind kind, const Active& active, double time) noexcept;
  // Gives a piece to the request's reader. Returns whether the piece ends the sample.
  [[nodiscard]] bool deliver(Active& active, Piece piece, double time);
  // Counts a step of a request's beam search. Returns whether the search has ended; if so, the request's state has the beams. Error: the
  // search has ended, and its beams could not be made.
  [[nodiscard]] Result<bool> deliver_search(Active& active, double time);
  void count_drafts(Active& active) noexcept;
  // Notes that `computed` tokens of the request are computed. `computed` includes tokens that the session had before the request.
  void note_progress(Active& active, std::uint64_t computed, double time) noexcept;
  // Ends a sample that is in no list any more. With an error, the request ends too.
  void end(Active& active, std::optional<Error> error) noexcept;
  // Makes the next apply_wishes() end the request with this error.
  void fail(RequestHandle::State& request, const Error& error) noexcept;
  void count_step(double seconds, std::uint64_t rows, std::uint64_t tokens) noexcept;

  // The news of one step.
  struct Told {
    std::vector<RequestEvent> events;
    std::vector<std::pair<std::shared_ptr<RequestHandle::State>, RequestPiece>> pieces;  // for callbacks
    // The first request whose reader is to be told; the next one is its RequestHandle::State::told_after. The list lies in the
    // requests, so adding to it takes no memory and cannot fail.
    std::shared_ptr<RequestHandle::State> readers;
  };
  [[nodiscard]] Told take() noexcept { return std::exchange(told_, {}); }

  // --- After a step. Call these without a lock: they call the host.
  void hand_out(Told& told) noexcept;
  void tell_readers(Told& told) noexcept;

 private:
  struct Gap {
    double seconds;
    std::uint64_t tokens;
  };
  void note_token(Active& active, bool is_first, double time);
  void note_reader(const std::shared_ptr<RequestHandle::State>& request) noexcept;
  void tell_kv_events() noexcept;

  const Setup& setup_;
  HostCalls& host_;
  Inbox& inbox_;
  Accounts& accounts_;
  EngineTime& engine_time_;

  Told told_;
  std::vector<Gap> gaps_;  // seconds between this step's tokens and the tokens before; equal gaps in a row are one entry

  std::unique_ptr<KvWatch> kv_watch_;    // set if the host listens (SchedulerOptions::on_kv_event)
  std::atomic<bool> is_telling_ = false; // a thread hands out the events of kv_watch_
};

}  // namespace tessera::detail
