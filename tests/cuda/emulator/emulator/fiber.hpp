// A stack of its own and the switch to it, known to AddressSanitizer and ThreadSanitizer.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tessera::emulator {

class Fiber {
 public:
  Fiber();                                   // the calling thread's own stack
  explicit Fiber(void (*entry)() noexcept);  // `entry` begins at the first switch and never returns
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From the running fiber, which is *this, until something switches back to it.
  void switch_to(Fiber& other);

 private:
  static void begin() noexcept;
  void arrived();

  void (*entry_)() noexcept = nullptr;
  void* mapping_ = nullptr;  // a guard page, then the stack
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
  const void* bottom_ = nullptr;  // of the stack: its lowest address
  std::size_t bytes_ = 0;
  void* fake_stack_ = nullptr;       // AddressSanitizer's
  void* sanitizer_fiber_ = nullptr;  // ThreadSanitizer's
};

}  // namespace tessera::emulator
