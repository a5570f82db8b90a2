// A checksum that does not know how pages lie: elements are gathered into their logical order first.
#include <algorithm>
#include <array>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <tessera/kv/kv_cache.hpp>

namespace tessera {

std::uint64_t KvCache::checksum(std::size_t layer) const noexcept {
  if (layer >= layout().layers.size()) return 0;
  const KvView at = view();
  const KvLayerShape& shape = layout().layers[layer].shape;
  const std::size_t element = dtype() == DType::f32 ? 4 : 2;
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  std::array<std::byte, 4 * 256> key;  // a key's elements lie page_tokens apart: gathered up to 256 at a time
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    for (std::uint64_t position = 0; position < length(); ++position) {
      const std::byte* block = at.k_block(layer, head, at.page_of(position)) + at.slot_of(position) * element;
      for (std::size_t first = 0; first < shape.key_dim; first += 256) {
        const std::size_t n = std::min<std::size_t>(256, shape.key_dim - first);
        for (std::size_t d = 0; d < n; ++d) {
          std::memcpy(key.data() + d * element, block + (first + d) * layout().page_tokens * element, element);
        }
        XXH3_64bits_update(&hash, key.data(), n * element);
      }
    }
  }
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    for (std::uint64_t position = 0; position < length(); ++position) {
      const std::size_t bytes = shape.value_dim * element;
      XXH3_64bits_update(&hash, at.v_block(layer, head, at.page_of(position)) + at.slot_of(position) * bytes, bytes);
    }
  }
  return XXH3_64bits_digest(&hash);
}

}  // namespace tessera
