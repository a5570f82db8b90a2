// Requests that drop tokens: with a budget of tokens, or streams. Once tokens have been dropped, a recompute would not
// give the same keys and values: the dropped tokens were seen by those that stay. So such a request keeps its pages
// until its end, where there is no kv_file, and before its first drop it makes sure that it can:
//
//   budget 148, 129 tokens are left by a drop, pages of 32 tokens, two samples of a prompt of 185 tokens
//   before the drop    6 pages, shared by both; each can give way and is computed again
//   the drop needs     5 pages: copies of the shared ones that stay; and one set aside, to grow from 129 to 148 tokens
//   behind the drop    5 pages of its own, which it keeps
//
// If these pages are not there, the request gives way before the drop, as long as it still can. What has been set aside
// nobody else gets. So those who keep their pages end, whatever the others need. Whoever drives has all of this.
#pragma once

#include <cstdint>

#include "scheduler/preemption.hpp"
#include "scheduler/requests.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// Notes when the drops of a new request come, and what they take beside copies. `most`: tokens that one of its sequences draws at
// most.
void plan_drops(const Setup& setup, const Request& request, std::uint64_t most, Active& active);

class Drops {
 public:
  Drops(const Setup& setup, const Requests& requests, const Preemption& preemption)
      : setup_(setup), requests_(requests), preemption_(preemption) {}

  void begin_step() noexcept { taken_ = 0; }
  // Brings in line what the next row and the next drop of a request that has pages take.
  void count(Active& active) const;
  // Before rows behind which tokens are dropped for the first time: whether there are the pages that the request then keeps. A
  // plan believes that a request that gives way frees all of its pages, and cannot know which of them others hold as well.
  Status check(Active& active, std::uint64_t rows);

 private:
  [[nodiscard]] std::uint64_t shared_bytes(const Active& active, std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] std::uint64_t set_aside() const noexcept;

  const Setup& setup_;
  const Requests& requests_;
  const Preemption& preemption_;
  std::uint64_t taken_ = 0;  // bytes that first drops of this step are to find
};

}  // namespace tessera::detail
