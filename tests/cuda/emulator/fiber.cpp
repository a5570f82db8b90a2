#include <emulator/fiber.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)
// tessera_emulator_switch(void** saved, void* other): leaves the registers that a call preserves on this stack and its
// pointer in *saved, and goes on where `other` was left. (The floating-point modes are the same everywhere.)
asm(R"(
.text
.p2align 4
.globl tessera_emulator_switch
.hidden tessera_emulator_switch
.type tessera_emulator_switch, @function
tessera_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tessera_emulator_switch, .-tessera_emulator_switch
)");
extern "C" void tessera_emulator_switch(void** saved, void* other);
#endif

namespace tessera::emulator {
namespace {

constexpr std::size_t kStackBytes = 256 << 10;  // mapped; what is never touched is never there

thread_local Fiber* left = nullptr;     // what the last switch went from
thread_local Fiber* entered = nullptr;  // and to

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Fiber::Fiber() {
#if defined(__SANITIZE_THREAD__)
  sanitizer_fiber_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*entry)() noexcept) : entry_(entry) {
  const std::size_t guard = page_bytes();
  mapping_ =
      mmap(nullptr, guard + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(mapping_, guard, PROT_NONE);
  auto* const low = static_cast<unsigned char*>(mapping_) + guard;
  bottom_ = low;
  bytes_ = kStackBytes;
#if defined(__x86_64__)
  // As a call of begin() would find it: the return address, here none, at a multiple of 16 less 8.
  auto* top = reinterpret_cast<std::uint64_t*>(low + kStackBytes - 16);
  *--top = 0;
  *--top = reinterpret_cast<std::uint64_t>(&Fiber::begin);
  stack_pointer_ = top - 6;  // six registers, zero as fresh pages are
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = low;
  context_.uc_stack.ss_size = kStackBytes;
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::begin), 0);
#endif
#if defined(__SANITIZE_THREAD__)
  sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  if (mapping_ == nullptr) return;
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(sanitizer_fiber_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(bottom_, bytes_);
#endif
  munmap(mapping_, page_bytes() + bytes_);
}

void Fiber::begin() noexcept {
  entered->arrived();
  entered->entry_();
}

void Fiber::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &left->bottom_, &left->bytes_);
#endif
}

void Fiber::switch_to(Fiber& other) {
  left = this;
  entered = &other;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, other.bottom_, other.bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(other.sanitizer_fiber_, 0);
#endif
#if defined(__x86_64__)
  tessera_emulator_switch(&stack_pointer_, other.stack_pointer_);
#else
  swapcontext(&context_, &other.context_);
#endif
  arrived();
}

}  // namespace tessera::emulator
