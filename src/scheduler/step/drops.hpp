// Makes sure that requests that drop tokens (token budgets, streams) always reach their end. After a drop, keys and values of the remaining
// tokens still depend on the dropped tokens, so computing them again would give other bits. Without a kv_file, a request therefore keeps its
// pages from its first drop to its end, and may drop tokens only if there are enough pages for the rest of its tokens. Example:
//
//   the request        a budget of 168 tokens, of which a drop leaves 147; pages of 32 tokens; two samples of a prompt of 185 tokens
//   before the drop    6 pages, which both samples share; each sample can give its pages up and be computed again
//   a sample's drop    needs 5 pages for copies of the shared pages that stay, and sets 1 more page aside, to grow from 147 to 168 tokens
//   after the drop     each sample has 5 pages of its own, and keeps them
//
// If the pages that the drop needs are not free, the request gives up its pages before the drop, while it still can. Pages that are set
// aside are never given to another request, so a request that keeps its pages always reaches its end. Used only by the driving thread.
#pragma once

#include <cstdint>

#include "scheduler/step/preemption.hpp"
#include "scheduler/requests/requests.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// Sets for a new request at which length it drops tokens, and how many bytes of pages a drop needs in addition to copies of shared pages.
// `most`: limit of the tokens that each of the request's sequences draws.
void plan_drops(const Setup& setup, const Request& request, std::uint64_t most, Active& active);

class Drops {
 public:
  Drops(const Setup& setup, const Requests& requests, const Preemption& preemption)
      : setup_(setup), requests_(requests), preemption_(preemption) {}

  void begin_step() noexcept { taken_ = 0; }
  // Updates copy_bytes, drop_bytes and keeps_pages in active.planned (PlannedRequest). Precondition: the request has pages.
  void count(Active& active) const;
  // Call this before the request's next `rows` rows. If the request's first drop follows these rows, checks that the pages that the drop
  // needs are free. Error: cache_full. (The plan cannot check this, because it counts all pages of a preempted request as free, including
  // pages that other requests share.)
  Status check(Active& active, std::uint64_t rows);

 private:
  [[nodiscard]] std::uint64_t shared_bytes(const Active& active, std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] std::uint64_t set_aside() const noexcept;

  const Setup& setup_;
  const Requests& requests_;
  const Preemption& preemption_;
  std::uint64_t taken_ = 0;  // bytes that this step has promised to requests for their first drops
};

}  // namespace tessera::detail
