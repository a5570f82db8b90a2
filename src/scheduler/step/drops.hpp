// Requests that drop tokens: with a budget of tokens, or streams. Once tokens have been dropped, a recompute would not
// give the same keys and values, because the remaining tokens have seen the dropped ones. So without a kv_file the request keeps
// its pages until its end, and before its first drop it makes sure that it can:
//
//   example            a budget of 168 tokens, of which a drop leaves 147; pages of 32 tokens; two samples of a prompt of 185 tokens
//   before the drop    6 pages, which both samples share; each sample can give its pages up and be computed again
//   the drop needs     5 pages for copies of the shared pages that stay, and 1 page set aside, to grow from 147 to 168 tokens
//   after the drop     each sample has 5 pages of its own, and keeps them
//
// If the pages that the drop needs are not free, the request gives its pages up before the drop, while that is still possible. No other
// request gets pages that are set aside, so a request that keeps its pages always reaches its end. Used by the driving thread.
#pragma once

#include <cstdint>

#include "scheduler/step/preemption.hpp"
#include "scheduler/requests/requests.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// Notes at which length a new request drops tokens, and the bytes of pages that a drop takes beside copies of shared pages. `most`: the
// most tokens that one of the request's sequences draws.
void plan_drops(const Setup& setup, const Request& request, std::uint64_t most, Active& active);

class Drops {
 public:
  Drops(const Setup& setup, const Requests& requests, const Preemption& preemption)
      : setup_(setup), requests_(requests), preemption_(preemption) {}

  void begin_step() noexcept { taken_ = 0; }
  // Updates copy_bytes, drop_bytes and keeps_pages of active.planned (PlannedRequest), for a request with pages.
  void count(Active& active) const;
  // Checks that the pages are free which the request's first drop needs. Call it before the request's next `rows` rows; if no first drop
  // follows them, nothing is checked. (The plan cannot check this. It counts all pages of a preempted request as free, also pages that
  // other requests share.) Error: cache_full.
  Status check(Active& active, std::uint64_t rows);

 private:
  [[nodiscard]] std::uint64_t shared_bytes(const Active& active, std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] std::uint64_t set_aside() const noexcept;

  const Setup& setup_;
  const Requests& requests_;
  const Preemption& preemption_;
  std::uint64_t taken_ = 0;  // bytes promised to first drops of this step
};

}  // namespace tessera::detail
