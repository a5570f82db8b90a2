// Makes one layer's keys and values readable and writable for the processor (with the functions of records.hpp). If the processor can
// address the cache's memory, a LayerOnHost refers to the cache itself: nothing is copied and nothing allocated. Otherwise (a GPU's memory,
// or ranks in other processes that have some of the heads) the object holds a copy of the layer's part of each page, with all heads, and
// write_back() copies changes to the cache.
//
//   auto layer = tessera::kv::LayerOnHost::read(cache, 0, 0, 16);  // layer 0, positions 0 to 15
//   if (layer) tessera::kv::decode(layer->view(), layer->head(tessera::kv::KeyOrValue::key, 0), 3, key.data());
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/memory.hpp>
#include <tessera/extend/kv/records.hpp>
#include <tessera/kv/kv_cache.hpp>

namespace tessera::kv {

class LayerOnHost {
 public:
  LayerOnHost() noexcept = default;  // an empty handle (docs/headers.md)
  LayerOnHost(LayerOnHost&& other) noexcept { *this = std::move(other); }
  LayerOnHost& operator=(LayerOnHost&& other) noexcept;
  // Reads positions [first, last). Precondition: the layer's group has the pages of these positions. The object is valid until the cache is
  // next changed. If a copy is needed, its memory is allocated from `host`. Errors: out_of_memory, device_error.
  [[nodiscard]] static Result<LayerOnHost> read(const KvCache& cache, std::size_t layer, std::uint64_t first,
                                                std::uint64_t last, Memory& host = system_memory()) noexcept;
  // Makes the object without reading, for a caller that writes all positions [first, last). If a copy is needed, it is zero at first.
  [[nodiscard]] static Result<LayerOnHost> blank(const KvCache& cache, std::size_t layer, std::uint64_t first,
                                                 std::uint64_t last, Memory& host = system_memory()) noexcept;

  // view() and head() return the arguments that the functions of records.hpp need: the view of the layer, and the layer's keys or values of
  // one head.
  [[nodiscard]] KvView view() const noexcept;
  [[nodiscard]] HeadPart head(KeyOrValue part, std::size_t head) const noexcept {
    return {.layer = in_place() ? layer_ : 0, .part = part, .head = head};
  }

  // Writes the copy back to the cache. After an error the content of these positions is unknown.
  [[nodiscard]] Status write_back() const noexcept;

 private:
  LayerOnHost(const KvCache& cache, std::size_t layer) noexcept : cache_(&cache), layer_(layer) {}
  [[nodiscard]] static Result<LayerOnHost> make(const KvCache& cache, std::size_t layer, std::uint64_t first,
                                                std::uint64_t last, Memory& host);
  [[nodiscard]] bool in_place() const noexcept { return layout_.page_tokens == 0; }

  const KvCache* cache_ = nullptr;
  std::size_t layer_ = 0;
  // The members of a copy; unused if the cache's own memory is addressable.
  KvLayout layout_;                // a layout that has only this layer
  Buffer buffer_;                  // the layer's part of pages [first_page_, pages_.size())
  std::vector<std::byte*> pages_;  // into the buffer
  std::byte* const* table_ = nullptr;  // pages_.data(): the page table of the only group
  std::size_t first_page_ = 0;
};

}  // namespace tessera::kv
