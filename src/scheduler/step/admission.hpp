// Admits requests: gives them their sessions, or gives preempted ones their pages back. When a prompt is computed, forks its samples or
// beams. Only the driving thread uses it.
#pragma once

#include <cstddef>

#include "scheduler/step/delivery.hpp"
#include "scheduler/plan/learnt.hpp"
#include "scheduler/requests/requests.hpp"

namespace tessera::detail {

class Admission {
 public:
  Admission(const Setup& setup, Accounts& accounts, Inbox& inbox, Delivery& delivery, Requests& requests, Learnt& learnt)
      : setup_(setup), accounts_(accounts), inbox_(inbox), delivery_(delivery), requests_(requests), learnt_(learnt) {}

  // Gives a request its session or, if it was preempted, its pages, so that it can run. After an error it may be admitted again later.
  Status admit(Active& active, double time) noexcept;
  // Forks the samples, or begins the beam search, of each request of whose prompt only the last token is not computed.
  void branch() noexcept;

 private:
  Status make_session(Active& active);
  void take_known(Active& active);
  void fork_samples(std::size_t index) noexcept;
  void begin_search(Active& active) noexcept;

  const Setup& setup_;
  Accounts& accounts_;
  Inbox& inbox_;
  Delivery& delivery_;
  Requests& requests_;
  Learnt& learnt_;
};

}  // namespace tessera::detail
