// Turns Ctrl-C into a stop_token.
#pragma once

#include <stop_token>
#include <thread>

// While an Interrupt exists, the first Ctrl-C requests a stop, and a second Ctrl-C ends the program. On Windows, the system starts a thread
// for Ctrl-C, and this thread requests the stop. On POSIX, SIGINT is blocked and a thread of the object waits for it, because a signal
// handler must not call request_stop(). Make the object before other threads, so that they block SIGINT too (a thread inherits the signal
// mask).
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::thread thread_;
};
