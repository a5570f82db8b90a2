// Handles Ctrl-C for a program that continues afterwards: each Ctrl-C stops only the present work.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

// The effect of a Ctrl-C that comes while there is no work.
enum class IdleInterrupt : std::uint8_t {
  wakes,  // waitable() is signalled, and the program goes on
  ends,   // the program ends with status 130
};

// While an object exists, a thread waits for Ctrl-C and does what begin() and IdleInterrupt say. On POSIX, SIGINT is blocked and this
// thread receives it; make the object before other threads, because they must block SIGINT too. If the parent process ignores SIGINT (a
// shell's background job), SIGINT stays ignored. Make only one object at a time.
class Interrupts {
 public:
  // `before_end`: a function that is called before Ctrl-C ends the program; nullptr: none. It runs on another thread while the program's
  // thread may be anywhere, so it must neither wait for locks nor use stdio. Throws std::system_error.
  explicit Interrupts(IdleInterrupt idle, void (*before_end)() noexcept = nullptr);
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  // Begins work that Ctrl-C can stop, and returns its stop token. Until end(), the first Ctrl-C stops the work, and a second Ctrl-C ends
  // the program. With IdleInterrupt::wakes, a Ctrl-C that came after the last end() and was not cleared stops the work at once, because for
  // the user the work had begun already.
  [[nodiscard]] std::stop_token begin() {
    const std::lock_guard lock(mutex_);
    work_.emplace();
    if (clear()) work_->request_stop();
    return work_->get_token();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    work_.reset();
  }

  // Returns an object of the system that is signalled when Ctrl-C comes while there is no work, so that a wait for input can wait for
  // Ctrl-C too. It is a descriptor (POSIX) or an event (Windows). -1: there is no such object.
  [[nodiscard]] std::intptr_t waitable() const noexcept { return ends_[0]; }
  bool clear() noexcept;  // removes the signal; returns whether there was one

  void arrived();  // called by the waiting thread when Ctrl-C has come

 private:
  void wait();  // POSIX only

  const IdleInterrupt idle_;
  void (*const before_end_)() noexcept;
  std::mutex mutex_;
  std::optional<std::stop_source> work_;
  std::intptr_t ends_[2] = {-1, -1};  // the ends of a pipe; Windows: an event
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
