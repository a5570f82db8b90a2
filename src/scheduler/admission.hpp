// Requests get their sessions, or their pages back, and become several sequences behind their prompt. Whoever drives has it.
#pragma once

#include <cstddef>

#include "scheduler/delivery.hpp"
#include "scheduler/learnt.hpp"
#include "scheduler/requests.hpp"

namespace tessera::detail {

class Admission {
 public:
  Admission(const Setup& setup, Accounts& accounts, Inbox& inbox, Delivery& delivery, Requests& requests, Learnt& learnt)
      : setup_(setup), accounts_(accounts), inbox_(inbox), delivery_(delivery), requests_(requests), learnt_(learnt) {}

  // Gives a request what it needs to run: a session, or its pages. On error it may be admitted again.
  Status admit(Active& active, double time) noexcept;
  // Requests whose prompt is done but for its last token become samples, or a search.
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
