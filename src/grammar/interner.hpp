// A hash table that finds an id by its key, without storing keys. The owner of the table stores the keys. find() gets a function from the
// owner, which compares the wanted key with the stored key of an id. So a key of any shape (a struct, a range of an array) is stored only
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::grammar {

[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t h, std::uint64_t value) noexcept {
  h = (h ^ value) * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  return h ^ (h >> 29);
}

inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;

class Interner {
 public:
  // Returns the id with this hash for which same(id) is true; kNone if there is none.
  template <class Same>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Same&& same) const {
    if (slots_.empty()) return kNone;
    for (std::size_t i = place(hash);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].id == kNone) return kNone;
      if (slots_[i].hash == static_cast<std::uint32_t>(hash) && same(slots_[i].id)) return slots_[i].id;
    }
  }

  // Adds an id. Precondition: find() has not found its key.
  void add(std::uint64_t hash, std::uint32_t id) {
    if ((size_ + 1) * 3 > slots_.size() * 2) grow();
    put(hash, id);
    ++size_;
  }

  [[nodiscard]] std::size_t memory_bytes() const noexcept { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id = kNone;
  };

  [[nodiscard]] std::size_t place(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>(static_cast<std::uint32_t>(hash) * 0x9E3779B1u) & (slots_.size() - 1);
  }
  void put(std::uint64_t hash, std::uint32_t id) {
    std::size_t i = place(hash);
    while (slots_[i].id != kNone) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {static_cast<std::uint32_t>(hash), id};
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id != kNone) put(slot.hash, slot.id);
    }
  }

  std::vector<Slot> slots_;  // a power of two in number; at most two thirds are used
  std::size_t size_ = 0;
};

// A hash map from 64-bit keys to 32-bit values. The key ~0 must not be used.
class SmallMap {
 public:
  [[nodiscard]] std::uint32_t find(std::uint64_t key) const noexcept {
    if (keys_.empty()) return kNone;
    for (std::size_t i = place(key);; i = (i + 1) & (keys_.size() - 1)) {
      if (keys_[i].key == key) return keys_[i].value;
      if (keys_[i].key == kFree) return kNone;
    }
  }
  void add(std::uint64_t key, std::uint32_t value) {
    if ((size_ + 1) * 3 > keys_.size() * 2) {
      std::vector<Slot> old(keys_.empty() ? 64 : keys_.size() * 2);
      old.swap(keys_);
      for (const Slot& slot : old) {
        if (slot.key != kFree) put(slot);
      }
    }
    put({key, value});
    ++size_;
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return keys_.capacity() * sizeof(Slot); }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kFree;
    std::uint32_t value = 0;
  };
  [[nodiscard]] std::size_t place(std::uint64_t key) const noexcept {
    return static_cast<std::size_t>(mix(0x51ED27u, key) >> 20) & (keys_.size() - 1);
  }
  void put(const Slot& slot) {
    std::size_t i = place(slot.key);
    while (keys_[i].key != kFree) i = (i + 1) & (keys_.size() - 1);
    keys_[i] = slot;
  }

  std::vector<Slot> keys_;
  std::size_t size_ = 0;
};

}  // namespace tessera::grammar
