// Memory for the walks over the KV cache: takes part in counted_new.hpp's count, so that it can refuse; knows what it
// has given and whether the calls to it make sense; and fills what is not to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <vector>

#include <tessera/extend/core/memory.hpp>

#include "counted_new.hpp"

namespace tessera::tests {

class CheckedMemory final : public Memory {
 public:
  static constexpr std::size_t kGranule = 256;  // smaller than some pages and larger than others

  [[nodiscard]] void* allocate(std::size_t bytes) noexcept override {
    void* base = take(bytes);
    if (base == nullptr) return nullptr;
    std::memset(base, 0, bytes);
    allocated_ += bytes;
    return base;
  }
  void release(void* base, std::size_t bytes) noexcept override {
    allocated_ -= bytes;
    std::memset(base, kUnused, bytes);
    std::free(base);
  }

  [[nodiscard]] std::size_t granularity() const noexcept override { return kGranule; }
  [[nodiscard]] void* reserve(std::size_t bytes) noexcept override {
    void* base = take(bytes);
    if (base == nullptr) return nullptr;
    const counted::Pause pause;
    std::memset(base, kUnused, bytes);
    regions_[base].assign(bytes / kGranule, false);
    reserved_ += bytes;
    return base;
  }
  [[nodiscard]] bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    if (!counted::granted() || refuses_) return false;
    mark(base, offset, bytes, true);
    std::memset(static_cast<std::byte*>(base) + offset, 0, bytes);
    committed_ += bytes;
    return true;
  }
  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    mark(base, offset, bytes, false);
    std::memset(static_cast<std::byte*>(base) + offset, kUnused, bytes);
    committed_ -= bytes;
  }
  void unreserve(void* base, std::size_t bytes) noexcept override {
    const counted::Pause pause;
    for (const bool committed : regions_[base]) makes_sense_ = makes_sense_ && !committed;
    makes_sense_ = makes_sense_ && regions_[base].size() == bytes / kGranule;
    regions_.erase(base);
    reserved_ -= bytes;
    std::free(base);
  }

  // From now on, or no longer.
  void refuse() noexcept { refuses_ = true; }
  void grant() noexcept { refuses_ = false; }

  [[nodiscard]] std::size_t allocated() const noexcept { return allocated_; }
  [[nodiscard]] std::size_t committed() const noexcept { return committed_; }
  [[nodiscard]] std::size_t reserved() const noexcept { return reserved_; }
  // False once something was committed or decommitted twice, or given back committed or with another size.
  [[nodiscard]] bool makes_sense() const noexcept { return makes_sense_; }

 private:
  static constexpr int kUnused = 0xdd;

  [[nodiscard]] void* take(std::size_t bytes) const noexcept {
    return counted::granted() && !refuses_ ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr;
  }
  void mark(void* base, std::size_t offset, std::size_t bytes, bool committed) noexcept {
    const counted::Pause pause;
    auto& granules = regions_[base];
    makes_sense_ = makes_sense_ && offset % kGranule == 0 && bytes % kGranule == 0 && bytes > 0 &&
                   offset / kGranule + bytes / kGranule <= granules.size();
    if (!makes_sense_) return;
    for (std::size_t i = offset / kGranule; i < (offset + bytes) / kGranule; ++i) {
      makes_sense_ = makes_sense_ && granules[i] != committed;
      granules[i] = committed;
    }
  }

  std::unordered_map<void*, std::vector<bool>> regions_;  // reserved: whether each granule is committed
  std::size_t allocated_ = 0, committed_ = 0, reserved_ = 0;
  bool makes_sense_ = true, refuses_ = false;
};

}  // namespace tessera::tests
