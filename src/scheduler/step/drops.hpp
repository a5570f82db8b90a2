// Requests that drop tokens: with a budget of tokens, or streams. Once tokens have been dropped, a recompute would not
// give the same keys and values, because the remaining tokens have seen the dropped ones. So without a kv_file the request keeps
// its pages until its end, and before its first drop it makes sure that it can:
//
//   budget 148, 129 tokens are left by a drop, pages of 32 tokens, two samples of a prompt of 185 tokens
//   before the drop    6 pages, shared by both; each sample can give way and be computed again
//   the drop needs     5 pages: copies of the shared ones that stay; and one set aside, to grow from 129 to 148 tokens
//   after the drop     5 pages of its own, which it keeps
//
// If these pages are not free, the request gives way before the drop, while it still can. No other request gets pages that are
// set aside, so a request that keeps its pages always reaches its end. Used by the driving thread.
#pragma once

#include <cstdint>

#include "scheduler/step/preemption.hpp"
#include "scheduler/requests/requests.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// Notes at which length a new request drops tokens, and the bytes that a drop takes beside copies. `most`: the most tokens that one
// of the request's sequences draws.
void plan_drops(const Setup& setup, const Request& request, std::uint64_t most, Active& active);

class Drops {
 public:
  Drops(const Setup& setup, const Requests& requests, const Preemption& preemption)
      : setup_(setup), requests_(requests), preemption_(preemption) {}

  void begin_step() noexcept { taken_ = 0; }
  // Updates the bytes that the next row and the next drop of a request with pages take.
  void count(Active& active) const;
  // Checks that the pages are free that the request keeps from its first drop on. Call it before `rows` rows. If no first drop
  // follows the rows, nothing is checked. The plan cannot check this: it assumes that a request that gives way frees all of its
  // pages, also the pages that other requests share. Error: cache_full.
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
