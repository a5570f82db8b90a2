// Ctrl-C: stops the present work, and ends the program if there is none.
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace rag {

// While the object exists, SIGINT is blocked and a thread waits for it. Make the object before other threads, which must block SIGINT too. If
// the parent process ignores SIGINT (a shell's background job), SIGINT stays ignored.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  // Returns the stop token of the work that begins now. Until end(), Ctrl-C stops the work, and a second Ctrl-C ends the program.
  [[nodiscard]] std::stop_token begin();
  void end();

 private:
  void wait();
  std::mutex mutex_;
  std::optional<std::stop_source> work_;
  std::thread thread_;
};

// Calls begin() in the constructor and end() in the destructor.
class Work {
 public:
  explicit Work(Interrupts& interrupts) : interrupts_(interrupts), stop_(interrupts.begin()) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() { interrupts_.end(); }
  [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }

 private:
  Interrupts& interrupts_;
  std::stop_token stop_;
};

}  // namespace rag
