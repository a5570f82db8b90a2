// Preempts requests: takes their pages away. The pages are moved to the KV file, or freed and computed again later. A request that is
// preempted "gives way". Used only by the driving thread.
#pragma once

#include <cstdint>

#include "scheduler/step/delivery.hpp"
#include "scheduler/plan/learnt.hpp"
#include "scheduler/requests/requests.hpp"

namespace tessera::detail {

class Preemption {
 public:
  Preemption(const Setup& setup, HostCalls& host, Accounts& accounts, Delivery& delivery, Requests& requests, const Learnt& learnt)
      : setup_(setup), host_(host), accounts_(accounts), delivery_(delivery), requests_(requests), learnt_(learnt) {}

  void begin_step() noexcept { is_stuck_ = false; }
  // Returns whether, in this step, a request that must keep its pages needed one more page and found none.
  [[nodiscard]] bool is_stuck() const noexcept { return is_stuck_; }

  // Returns whether the request's pages can be taken and later restored with the same bits. False if the KV cache is not paged. With a KV
  // file: always true, because the file keeps the pages. Without a file the pages must be computed again. This is impossible if the session
  // was edited or has dropped tokens, if a drop comes before the next row, if an embedding cannot be found again
  // (SessionOptions::embedding_of), or if the request came with a session whose rows have voted (Active::has_earlier_votes).
  [[nodiscard]] bool can_give_way(const Active& active) const noexcept;
  // Takes the request's pages: moves them to the file, or frees them, whichever costs less time.
  void give_way(Active& active) noexcept;
  // Frees a request's beam search. The search will begin again at the end of the prompt. Its result will be the same, because a beam search
  // draws no random numbers.
  void give_search_up(Active& active) noexcept;
  // Takes the pages of held-back requests, beginning with the last request, until `wanted` bytes are free. `free`: bytes that are free now.
  void take_from_held_back(std::uint64_t wanted, std::uint64_t free) noexcept;
  // Handles a request for whose rows there were no pages. The request waits if other requests have pages, or lost their pages in this step
  // (`have_others_failed`). Otherwise waiting is useless, and the request ends with `error`.
  void fail_or_wait(ActivePtr active, const Error& error, bool have_others_failed) noexcept;

 private:
  const Setup& setup_;
  HostCalls& host_;
  Accounts& accounts_;
  Delivery& delivery_;
  Requests& requests_;
  const Learnt& learnt_;
  bool is_stuck_ = false;
};

}  // namespace tessera::detail
