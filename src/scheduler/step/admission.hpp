// Admits requests: gives them their sessions, or their pages back. Forks samples and beams when the prompt is computed. Used by the driving
// thread.
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

  // Gives a request a session, or its pages back, so that it can run. After an error the request may be admitted again.
  Status admit(Active& active, double time) noexcept;
  // Forks the samples, or begins the search, of each request whose prompt is computed up to its last token.
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
