// What every form of the global operator new asks in the programs of tests that include this (counted_new.cpp replaces it
// there). Allocations made while a Scope stands are counted, whatever their thread, and can be made to fail: one, or all
// from one on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

// Not inlined: the compiler would see that blocks begin before their address, and object.
namespace counted {

enum class Failure { none, once, from_then_on };

inline std::atomic<bool> active = false;
inline std::atomic<Failure> failure = Failure::none;
inline std::atomic<std::int64_t> left = 0;        // allocations until the one that fails
inline std::atomic<std::int64_t> count = 0;       // made while active
inline std::atomic<std::int64_t> failed = 0;      // of these
inline std::atomic<std::size_t> live = 0, peak = 0;  // bytes

// Whether the next allocation is granted. For other allocators that shall take part in the count.
inline bool granted() noexcept {
  if (!active.load(std::memory_order_relaxed)) return true;
  count.fetch_add(1, std::memory_order_relaxed);
  const Failure mode = failure.load(std::memory_order_relaxed);
  if (mode == Failure::none) return true;
  const std::int64_t at = left.fetch_sub(1, std::memory_order_relaxed);
  if (mode == Failure::once ? at != 0 : at > 0) return true;
  failed.fetch_add(1, std::memory_order_relaxed);
  return false;
}

struct Prefix {
  void* base;
  std::size_t bytes;
  std::size_t counted;
};

[[gnu::noinline]] inline void* take(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  if (!granted()) return nullptr;
  const std::size_t extra = sizeof(Prefix) + alignment;
  if (bytes > SIZE_MAX - extra) return nullptr;
  void* base = std::malloc(extra + bytes);
  if (base == nullptr) return nullptr;
  const auto block = (reinterpret_cast<std::uintptr_t>(base) + extra) / alignment * alignment;
  auto* prefix = reinterpret_cast<Prefix*>(block) - 1;
  *prefix = {base, bytes, active.load(std::memory_order_relaxed) ? 1u : 0u};
  if (prefix->counted != 0) {
    const std::size_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::size_t most = peak.load(std::memory_order_relaxed);
    while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
  }
  return reinterpret_cast<void*>(block);
}

[[gnu::noinline]] inline void give(void* block) noexcept {
  if (block == nullptr) return;
  auto* prefix = static_cast<Prefix*>(block) - 1;
  if (prefix->counted != 0) live.fetch_sub(prefix->bytes, std::memory_order_relaxed);
  std::free(prefix->base);
}

[[gnu::noinline]] inline void* take_or_throw(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  if (void* block = take(bytes, alignment)) return block;
  throw std::bad_alloc();
}

// Counts what is allocated in its lifetime; what of it is freed later is still subtracted from `live`.
class Scope {
 public:
  explicit Scope(std::int64_t fail = -1, Failure mode = Failure::once) noexcept {
    live = peak = 0;
    count = failed = 0;
    left = fail;
    failure = fail < 0 ? Failure::none : mode;
    active = true;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { stop(); }
  void stop() noexcept {
    active = false;
    failure = Failure::none;
  }
};

// A stretch of a Scope that is not counted.
class Pause {
 public:
  Pause() noexcept : was_(active.exchange(false)) {}
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
  ~Pause() { active = was_; }

  // Calls fn() as part of the Scope again.
  template <class Fn>
  auto counting(Fn&& fn) {
    active = was_;
    auto result = fn();
    active = false;
    return result;
  }

 private:
  bool was_;
};

}  // namespace counted
