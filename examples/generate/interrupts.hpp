// Ctrl-C for a program that goes on after it: each one stops what is being done, and nothing else.
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

// While it lives, SIGINT is blocked, and a thread waits for it. Make it before other threads, which must block it too.
// Where the parent has SIGINT ignored (a shell's background jobs), it stays so.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  // From now on Ctrl-C stops this token, and a second one ends the program, until end().
  [[nodiscard]] std::stop_token begin();
  void end();

  // A descriptor that can be read after a Ctrl-C while there was nothing to stop; -1: there is none.
  [[nodiscard]] int descriptor() const noexcept { return pipe_[0]; }
  void clear() noexcept;  // makes it unreadable again

 private:
  void wait();

  std::mutex mutex_;
  std::optional<std::stop_source> work_;
  int pipe_[2] = {-1, -1};
  std::thread thread_;
};

// begin() and end() as a scope.
class Interruptible {
 public:
  explicit Interruptible(Interrupts& interrupts) : interrupts_(interrupts), token_(interrupts.begin()) {}
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() { interrupts_.end(); }
  [[nodiscard]] const std::stop_token& token() const noexcept { return token_; }

 private:
  Interrupts& interrupts_;
  std::stop_token token_;
};
