// Who gives pages up, and how: to the KV file, or for good, so that they are computed again. Whoever drives has it.
#pragma once

#include <cstdint>

#include "scheduler/delivery.hpp"
#include "scheduler/learnt.hpp"
#include "scheduler/requests.hpp"

namespace tessera::detail {

class Preemption {
 public:
  Preemption(const Setup& setup, HostCalls& host, Accounts& accounts, Delivery& delivery, Requests& requests, const Learnt& learnt)
      : setup_(setup), host_(host), accounts_(accounts), delivery_(delivery), requests_(requests), learnt_(learnt) {}

  void begin_step() noexcept { is_stuck_ = false; }
  // A request that keeps its pages found no more of them in this step.
  [[nodiscard]] bool is_stuck() const noexcept { return is_stuck_; }

  // Returns whether the request's pages can be taken and had again with the same bits. Without a file that is: computed again,
  // which ends where tokens have been dropped, or are to be dropped before anything else.
  [[nodiscard]] bool can_give_way(Active& active) const noexcept;
  // Takes the request's pages in the cheaper way.
  void give_way(Active& active) noexcept;
  // A search begins anew behind its prompt: it draws nothing, so it finds the same.
  void give_search_up(Active& active) noexcept;
  // Takes the pages of requests that are held back, the last one first, until a plan's bytes are there.
  void take_from_held_back(std::uint64_t wanted, std::uint64_t free) noexcept;
  // A request whose rows found no pages waits for some, if others have some, or had in this step (`have_others_failed`); else that
  // is its error.
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
