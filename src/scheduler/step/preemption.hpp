// Takes pages from requests: moves the pages to the KV file, or frees them, so that they are computed again later. A request whose pages
// are taken gives way. Used by the driving thread.
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
  // Returns whether in this step a request that keeps its pages found no page to grow.
  [[nodiscard]] bool is_stuck() const noexcept { return is_stuck_; }

  // Returns whether the request's pages can be taken and later restored with the same bits. Without a KV file they have to be computed
  // again. That is impossible once tokens were dropped, if a drop comes before the next row, and for embeddings.
  [[nodiscard]] bool can_give_way(const Active& active) const noexcept;
  // Takes the request's pages, in the way that costs less time.
  void give_way(Active& active) noexcept;
  // Drops a request's search, which begins anew behind the prompt. The result stays the same, since a search draws nothing.
  void give_search_up(Active& active) noexcept;
  // Takes the pages of requests that are held back, the last one first, until `wanted` bytes are free.
  void take_from_held_back(std::uint64_t wanted, std::uint64_t free) noexcept;
  // Handles a request whose rows found no pages. The request waits if other requests have pages, or had some in this step
  // (`have_others_failed`). Otherwise it ends with `error`.
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
