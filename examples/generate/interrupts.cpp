// The part of Interrupts that is the same on every system; the rest is in system/.
#include "interrupts.hpp"

std::stop_token Interrupts::begin() {
  const std::lock_guard lock(mutex_);
  work_.emplace();
  if (clear()) work_->request_stop();
  return work_->get_token();
}

void Interrupts::end() {
  const std::lock_guard lock(mutex_);
  work_.reset();
}
