// What hosts and readers learn: pieces, progress, events, ends of requests. A step notes it behind the driver's lock and takes it
// along (Told); callbacks run when the step is over and its thread holds no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kv/kv_watch.hpp"
#include "scheduler/accounts.hpp"
#include "scheduler/active.hpp"
#include "scheduler/host_calls.hpp"
#include "scheduler/inbox.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

class Delivery {
 public:
  // May throw bad_alloc.
  Delivery(const Setup& setup, HostCalls& host, Inbox& inbox, Accounts& accounts, EngineTime& engine_time);

  // --- Within a step.
  // Room for so many pieces. Throws bad_alloc.
  void make_room_for_step(std::size_t pieces);
  // Notes an event. Without memory for it the event is not told.
  void tell(RequestEvent::Kind kind, const Active& active, double time) noexcept;
  // Gives a piece to the request's reader. Returns whether the sample has ended with it.
  [[nodiscard]] bool deliver(Active& active, Piece piece, double time);
  // Counts a step of a request's search. Returns whether it has ended; then the beams are the request's. Error: they could not be
  // made; then the search has ended too.
  [[nodiscard]] Result<bool> deliver_search(Active& active, double time);
  void count_drafts(Active& active) noexcept;
  // The first `computed` tokens of the request are there, with those that its session had before.
  void note_progress(Active& active, std::uint64_t computed, double time) noexcept;
  // Ends a sample that is in no list any more: well, or with an error, which ends the request.
  void end(Active& active, std::optional<Error> error) noexcept;
  // A request is to end at the next look, with an error.
  void fail(RequestHandle::State& request, const Error& error) noexcept;
  void count_step(double seconds, std::uint64_t rows, std::uint64_t tokens) noexcept;

  // What a step has to tell.
  struct Told {
    std::vector<RequestEvent> events;
    std::vector<std::pair<std::shared_ptr<RequestHandle::State>, RequestPiece>> pieces;  // for callbacks
    // Requests whose reader is to be told: a list, by RequestHandle::State::told_after. It goes through the requests, so that no
    // reader is left untold for want of memory.
    std::shared_ptr<RequestHandle::State> readers;
  };
  [[nodiscard]] Told take() noexcept { return std::exchange(told_, {}); }

  // --- After a step: calls the host, without a lock.
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
  std::vector<Gap> gaps_;  // between this step's tokens and those before: equal for most of them

  std::unique_ptr<KvWatch> kv_watch_;    // where the host listens
  std::atomic<bool> is_telling_ = false; // a thread hands its events out
};

}  // namespace tessera::detail
