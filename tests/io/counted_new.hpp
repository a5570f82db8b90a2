// Replaces the global operator new of the executable that includes it (in one file only): allocations made while a
// CountedScope stands are counted, and one of them can be made to fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

// Not inlined: the compiler would see that blocks begin before their address, and object.
namespace counted {

inline bool active = false;
inline std::int64_t fail_at = -1;   // which allocation from now on fails; negative: none
inline std::int64_t count = 0;      // allocations made while active
inline std::size_t live = 0, peak = 0;

struct Prefix {
  std::size_t bytes;
  std::size_t counted;  // keeps the block aligned to 16
};

[[gnu::noinline]] inline void* take(std::size_t bytes) noexcept {
  if (active) {
    ++count;
    if (fail_at >= 0 && fail_at-- == 0) return nullptr;
  }
  if (bytes > SIZE_MAX - sizeof(Prefix)) return nullptr;
  auto* prefix = static_cast<Prefix*>(std::malloc(sizeof(Prefix) + bytes));
  if (prefix == nullptr) return nullptr;
  *prefix = {bytes, active ? 1u : 0u};
  if (active) {
    live += bytes;
    if (live > peak) peak = live;
  }
  return prefix + 1;
}

[[gnu::noinline]] inline void give(void* block) noexcept {
  if (block == nullptr) return;
  auto* prefix = static_cast<Prefix*>(block) - 1;
  if (prefix->counted != 0) live -= prefix->bytes;
  std::free(prefix);
}

// Counts what is allocated in its lifetime; what of it is freed later is still subtracted from `live`.
class Scope {
 public:
  explicit Scope(std::int64_t fail = -1) noexcept {
    live = peak = 0;
    count = 0;
    fail_at = fail;
    active = true;
  }
  ~Scope() { stop(); }
  void stop() noexcept {
    active = false;
    fail_at = -1;
  }
};

}  // namespace counted

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* block = counted::take(bytes)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return ::operator new(bytes); }
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted::take(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted::take(bytes); }
[[gnu::noinline]] void operator delete(void* block) noexcept { counted::give(block); }
[[gnu::noinline]] void operator delete[](void* block) noexcept { counted::give(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { counted::give(block); }
[[gnu::noinline]] void operator delete[](void* block, std::size_t) noexcept { counted::give(block); }
[[gnu::noinline]] void operator delete(void* block, const std::nothrow_t&) noexcept { counted::give(block); }
[[gnu::noinline]] void operator delete[](void* block, const std::nothrow_t&) noexcept { counted::give(block); }
