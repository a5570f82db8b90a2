// Tells hosts and readers about pieces, progress, events and ends of requests. A step collects this news under step_mutex_, and takes it
// out at its end (Told). Callbacks run after the step, when the thread holds no lock.
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
  // Subscribes to the engine's KV events, if the host listens to them. May throw bad_alloc.
  Delivery(const Setup& setup, HostCalls& host, Inbox& inbox, Accounts& accounts, EngineTime& engine_time);

  // --- Called within a step.
  // Reserves memory for `pieces` pieces. Throws bad_alloc.
  void make_room_for_step(std::size_t pieces);
  // Collects an event for the host. If memory is short, the event is lost.
  void tell(RequestEvent::Kind kind, const Active& active, double time) noexcept;
  // Delivers a piece to the request's reader. Returns whether this is the sample's last piece.
  [[nodiscard]] bool deliver(Active& active, Piece piece, double time);
  // Counts a step of a request's beam search, which the caller has just computed. Returns whether the search has ended; if so, its beams
  // are in the request's state. Error: the search has ended, but its beams could not be made (for example, because memory is short).
  [[nodiscard]] Result<bool> deliver_search(Active& active, double time);
  void count_drafts(Active& active) noexcept;
  // Reports progress: `computed` tokens of the request are computed, including tokens of the session that came with the request.
  void note_progress(Active& active, std::uint64_t computed, double time) noexcept;
  // Ends a sample that was taken out of its list. If `error` is set, ends the whole request.
  void end(Active& active, std::optional<Error> error) noexcept;
  // Sets the request's error. The next apply_wishes() ends the request.
  void fail(RequestHandle::State& request, const Error& error) noexcept;
  void count_step(double seconds, std::uint64_t rows, std::uint64_t tokens) noexcept;

  // The news that one step has collected.
  struct Told {
    std::vector<RequestEvent> events;
    std::vector<std::pair<std::shared_ptr<RequestHandle::State>, RequestPiece>> pieces;  // pieces for on_piece callbacks
    // The first of a linked list of requests: those whose on_ready is due. Each request has the pointer to the next one
    // (RequestHandle::State::told_after), so adding a request to the list allocates nothing and cannot fail.
    std::shared_ptr<RequestHandle::State> readers;
  };
  [[nodiscard]] Told take() noexcept { return std::exchange(told_, {}); }

  // --- Called after a step, without any lock, because these functions call the host.
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
  std::vector<Gap> gaps_;  // seconds from each request's previous token to its token of this step; consecutive equal gaps are one entry

  std::unique_ptr<KvWatch> kv_watch_;    // nullptr unless the host listens to KV events (SchedulerOptions::on_kv_event)
  std::atomic<bool> is_telling_ = false; // true: a thread is passing the events of kv_watch_ to the host
};

}  // namespace tessera::detail
