// One layer's keys and values where the processor can read and write them (kv/records.hpp), wherever the cache's memory
// is. Where it is addressable that is the cache itself: nothing is copied, and nothing is allocated. Else it is a copy
// of that layer's part of each page, which write_back() brings to the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/core/memory.hpp>
#include <tessera/core/result.hpp>
#include <tessera/kv/kv_cache.hpp>
#include <tessera/kv/records.hpp>

namespace tessera::kv {

class LayerOnHost {
 public:
  LayerOnHost() noexcept = default;  // an empty handle (docs/headers.md)
  LayerOnHost(LayerOnHost&& other) noexcept { *this = std::move(other); }
  LayerOnHost& operator=(LayerOnHost&& other) noexcept;
  // Positions [first, last), which the layer's group holds; valid until the cache is next changed. `host`: where a copy is. Errors:
  // out_of_memory, device_error.
  [[nodiscard]] static Result<LayerOnHost> read(const KvCache& cache, std::size_t layer, std::uint64_t first,
                                                std::uint64_t last, Memory& host = system_memory()) noexcept;
  // The same, for a caller who writes all of them: a copy begins as zeros, also the rest of its first and last page.
  [[nodiscard]] static Result<LayerOnHost> blank(const KvCache& cache, std::size_t layer, std::uint64_t first,
                                                 std::uint64_t last, Memory& host = system_memory()) noexcept;

  // Pages of this layer alone, or the cache's own; head() says how records of the layer are found in it.
  [[nodiscard]] KvView view() const noexcept;
  [[nodiscard]] HeadPart head(Part part, std::size_t head) const noexcept {
    return {.layer = in_place() ? layer_ : 0, .part = part, .head = head};
  }

  // On error what the cache holds at these positions is unknown.
  [[nodiscard]] Status write_back() const noexcept;

 private:
  LayerOnHost(const KvCache& cache, std::size_t layer) noexcept : cache_(&cache), layer_(layer) {}
  [[nodiscard]] static Result<LayerOnHost> make(const KvCache& cache, std::size_t layer, std::uint64_t first,
                                                std::uint64_t last, Memory& host);
  [[nodiscard]] bool in_place() const noexcept { return layout_.page_tokens == 0; }

  const KvCache* cache_ = nullptr;
  std::size_t layer_ = 0;
  // Of a copy.
  KvLayout layout_;                // of one layer
  Buffer buffer_;                  // its part of pages [first_page_, pages_.size())
  std::vector<std::byte*> pages_;  // into the buffer
  std::byte* const* table_ = nullptr;  // pages_.data(): the one group's table
  std::size_t first_page_ = 0;
};

}  // namespace tessera::kv
