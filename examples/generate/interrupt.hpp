// Ctrl-C as a stop_token.
#pragma once

#include <stop_token>
#include <thread>

// While it lives, the first SIGINT requests a stop, and a second one ends the program. No signal handler: the signal is
// blocked, and one thread waits for it (requesting a stop is more than a handler may do). Make it before other threads,
// which must block the signal too.
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
