// Admits requests: gives a new request its session, and a preempted request its pages. When only a prompt's last token is left to
// compute, forks the samples or beams. Used only by the driving thread.
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

  // Prepares a request for running: makes its session or, if it was preempted, restores its pages. After an error, admit() may be called
  // again later.
  Status admit(Active& active, double time) noexcept;
  // Forks the samples, or begins the beam search, of each request of which only the prompt's last token is not computed.
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
