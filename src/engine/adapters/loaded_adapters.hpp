// The adapters that an engine has loaded, and the memory that they take together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tessera/adapter.hpp>
#include <tessera/core/result.hpp>

namespace tessera::detail {

// Thread-safe. Refers to the adapters, and owns none: an adapter's last handle frees it.
class LoadedAdapters {
 public:
  // Counts the bytes of an adapter that is about to be loaded. Error: over_budget, all adapters together would take more than `limit`.
  [[nodiscard]] Status take(std::uint64_t bytes, std::uint64_t limit) noexcept;
  void give_back(std::uint64_t bytes) noexcept;
  // Adds a loaded adapter. May throw bad_alloc.
  void add(const std::shared_ptr<const Adapter::State>& adapter);
  // Returns a loaded adapter with this content; an empty one if there is none.
  [[nodiscard]] Adapter find(const Hash128& content) const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  std::vector<std::weak_ptr<const Adapter::State>> list_;
};

}  // namespace tessera::detail
