// Access to keys, values and states of a cache that lie in other processes. If ranks are processes, other ranks have the pages of some
// heads and layers, and the cache in this process has only the rest. Code that reads or writes a whole layer uses whole_layout() with
// LayerOnHost, read_state() and write_state(), which call an OtherParts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tessera/core/result.hpp>
#include <tessera/kv/kv_cache.hpp>

namespace tessera::detail {

// Reads whole layers from all ranks, and writes them back to all ranks. Each call waits until no other thread uses the engine (Turn in
// engine/run/fair_queue.hpp), so a thread that has the engine's turn must not call it. Errors: out_of_memory; device_error, a rank is gone
// or refuses.
class OtherParts {
 public:
  virtual ~OtherParts() = default;
  // Reads the layer's blocks of all heads, [k | v][head], from page `first_page` on: pages[i] gets the blocks of page first_page + i.
  virtual Status read_layer(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::span<std::byte* const> pages) = 0;
  virtual Status write_layer(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::span<std::byte* const> pages) = 0;
  // Reads bytes [at, at + out.size()) of a recurrent layer's state in a page.
  virtual Status read_state(const KvCache& cache, std::size_t layer, std::uint64_t page, std::uint64_t at, std::span<std::byte> out) = 0;
  virtual Status write_state(const KvCache& cache, std::size_t layer, std::uint64_t page, std::uint64_t at, std::span<const std::byte> bytes) = 0;
};

// The parts of a cache that lie in other processes. A copy of the cache refers to the same parts.
struct Elsewhere {
  std::shared_ptr<OtherParts> parts;      // nullptr: the cache has everything
  std::shared_ptr<const KvLayout> whole;  // the layout of all heads and layers
};

// Records that other processes have parts of `cache`. Precondition: the cache is empty.
void set_elsewhere(KvCache& cache, Elsewhere elsewhere) noexcept;
[[nodiscard]] const Elsewhere& elsewhere_of(const KvCache& cache) noexcept;
// Returns the layout of all heads and layers, including heads and layers in other processes.
[[nodiscard]] inline const KvLayout& whole_layout(const KvCache& cache) noexcept {
  const Elsewhere& elsewhere = elsewhere_of(cache);
  return elsewhere.parts != nullptr ? *elsewhere.whole : cache.layout();
}

}  // namespace tessera::detail
