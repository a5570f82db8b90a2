// The adapters that an engine has loaded, and their bytes of memory together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tessera/adapter.hpp>
#include <tessera/core/result.hpp>

namespace tessera::detail {

// Thread-safe. Refers to adapters without owning them: an adapter is freed with its last handle.
class LoadedAdapters {
 public:
  // Adds `bytes`, the size of an adapter that will be loaded, to the bytes in use; give_back() subtracts them. Error: over_budget, all
  // adapters together would need more than `limit` bytes; nothing is added.
  [[nodiscard]] Status take(std::uint64_t bytes, std::uint64_t limit) noexcept;
  void give_back(std::uint64_t bytes) noexcept;
  // Adds a loaded adapter. May throw bad_alloc.
  void add(const std::shared_ptr<const Adapter::State>& adapter);
  // Returns a loaded adapter with this content, or an empty handle.
  [[nodiscard]] Adapter find(const Hash128& content) const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  std::vector<std::weak_ptr<const Adapter::State>> list_;
};

}  // namespace tessera::detail
