// Ctrl-C for a program that goes on after it: each Ctrl-C stops only the present work.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

// While an Interrupts object exists, Ctrl-C comes to a thread that waits for it. POSIX: SIGINT is blocked, and the object's thread waits. Make the object before other threads, which must block
// SIGINT too. If the parent process ignores SIGINT (a shell's background job), it stays ignored.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  // Returns a stop token for the work that begins now. Until end(), Ctrl-C stops it, and a second Ctrl-C ends the program. A Ctrl-C between
  // the reading of the last line and this call stops the token too, because for the user the work had begun.
  [[nodiscard]] std::stop_token begin();
  void end();

  // Returns what the system can wait for, which is signalled when Ctrl-C comes while there is nothing to stop: a descriptor, or an event
  // of Windows. -1: there is none.
  [[nodiscard]] std::intptr_t waitable() const noexcept { return ends_[0]; }
  bool clear() noexcept;  // takes the signal back; returns whether there was one

  void arrived();  // Ctrl-C came; called by the thread that waits for it

 private:
  void wait();  // POSIX

  std::mutex mutex_;
  std::optional<std::stop_source> work_;
  std::intptr_t ends_[2] = {-1, -1};  // of a pipe; Windows: an event
  std::thread thread_;
};

// Calls begin() in the constructor and end() in the destructor.
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
