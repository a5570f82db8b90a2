// Memory as a device's is: an address of it is a number that faults when it is followed, and bytes go in and out by
// transfers alone. Knows which addresses are its own, and can fail the transfer that it is told to.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include <tessera/extend/core/memory.hpp>

namespace tessera::tests {

// Not of operator new's, which a test may count.
template <class T>
struct Malloc {
  using value_type = T;
  Malloc() noexcept = default;
  template <class U>
  explicit Malloc(const Malloc<U>&) noexcept {}
  [[nodiscard]] T* allocate(std::size_t n) {
    if (void* block = std::malloc(n * sizeof(T)); block != nullptr) return static_cast<T*>(block);
    throw std::bad_alloc();
  }
  void deallocate(T* block, std::size_t) noexcept { std::free(block); }
  bool operator==(const Malloc&) const noexcept = default;
};

class HiddenMemory final : public Memory {
 public:
  // What it gives is `inner`'s.
  explicit HiddenMemory(Memory& inner = system_memory()) noexcept : inner_(inner) {}

  [[nodiscard]] void* allocate(std::size_t bytes) noexcept override { return add(inner_.allocate(bytes), bytes); }
  void release(void* base, std::size_t bytes) noexcept override {
    remove(base, bytes);
    inner_.release(reveal(base), bytes);
  }
  [[nodiscard]] std::size_t granularity() const noexcept override { return inner_.granularity(); }
  [[nodiscard]] void* reserve(std::size_t bytes) noexcept override { return add(inner_.reserve(bytes), bytes); }
  [[nodiscard]] bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    return inner_.commit(reveal(base), offset, bytes);
  }
  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    inner_.decommit(reveal(base), offset, bytes);
  }
  void unreserve(void* base, std::size_t bytes) noexcept override {
    remove(base, bytes);
    inner_.unreserve(reveal(base), bytes);
  }

  [[nodiscard]] bool addressable() const noexcept override { return false; }
  [[nodiscard]] bool read(std::span<const Transfer> parts) noexcept override { return run(parts, Side::host, Side::here); }
  [[nodiscard]] bool write(std::span<const Transfer> parts) noexcept override { return run(parts, Side::here, Side::host); }
  [[nodiscard]] bool copy(std::span<const Transfer> parts) noexcept override { return run(parts, Side::here, Side::here); }
  [[nodiscard]] bool fill(void* at, unsigned char byte, std::size_t bytes) noexcept override {
    const bool fails = begin();
    if (!owns(at, bytes)) return false;
    std::memset(reveal(at), fails ? kGarbage : byte, bytes);
    return !fails;
  }

  // The processor's address of the same bytes: what a kernel of the device's would see.
  template <class T>
  [[nodiscard]] static T* reveal(T* hidden) noexcept {
    return hidden == nullptr ? nullptr : std::bit_cast<T*>(std::bit_cast<std::uintptr_t>(hidden) ^ kMask);
  }

  // The k-th transfer from now on fails, once, and its targets hold garbage; the first is 0.
  void fail(std::size_t k) noexcept {
    const std::lock_guard lock(mutex_);
    fails_at_ = transfers_ + k;
  }
  void fail_no_more() noexcept { fail(kNever); }
  [[nodiscard]] std::size_t transfers() const noexcept {
    const std::lock_guard lock(mutex_);
    return transfers_;
  }
  // False once an address was none of its own.
  [[nodiscard]] bool makes_sense() const noexcept {
    const std::lock_guard lock(mutex_);
    return makes_sense_;
  }

 private:
  // Not canonical on x86-64 and aarch64 (where the top byte may be ignored), and above what an offset carries into.
  static constexpr std::uintptr_t kMask = std::uintptr_t{0x50} << 48;
  static constexpr unsigned char kGarbage = 0xee;
  static constexpr std::size_t kNever = std::size_t{1} << 62;
  enum class Side : std::uint8_t { host, here };
  struct Range {
    std::uintptr_t first;  // hidden
    std::size_t bytes;
    bool operator==(const Range&) const noexcept = default;
  };

  void* add(void* base, std::size_t bytes) noexcept {
    if (base == nullptr) return nullptr;
    void* hidden = reveal(base);
    const std::lock_guard lock(mutex_);
    live_.push_back({std::bit_cast<std::uintptr_t>(hidden), bytes});
    return hidden;
  }
  void remove(void* base, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    makes_sense_ = std::erase(live_, Range{std::bit_cast<std::uintptr_t>(base), bytes}) == 1 && makes_sense_;
  }
  // Whether the transfer fails.
  [[nodiscard]] bool begin() noexcept {
    const std::lock_guard lock(mutex_);
    return transfers_++ == fails_at_;
  }
  [[nodiscard]] bool owns(const void* at, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    const auto first = std::bit_cast<std::uintptr_t>(at);
    const bool mine = std::ranges::any_of(live_, [&](const Range& range) {
      return first >= range.first && first - range.first <= range.bytes && bytes <= range.bytes - (first - range.first);
    });
    makes_sense_ = makes_sense_ && mine;
    return mine;
  }
  [[nodiscard]] bool run(std::span<const Transfer> parts, Side to, Side from) noexcept {
    const bool fails = begin();
    for (const Transfer& part : parts) {
      if (to == Side::here && !owns(part.to, part.bytes)) return false;
      if (from == Side::here && !owns(part.from, part.bytes)) return false;
      void* target = to == Side::here ? reveal(part.to) : part.to;
      if (fails) std::memset(target, kGarbage, part.bytes);
      else std::memcpy(target, from == Side::here ? reveal(part.from) : part.from, part.bytes);
    }
    return !fails;
  }

  Memory& inner_;
  mutable std::mutex mutex_;
  std::vector<Range, Malloc<Range>> live_;  // reserved ones too
  std::size_t transfers_ = 0, fails_at_ = kNever;
  bool makes_sense_ = true;
};

}  // namespace tessera::tests
