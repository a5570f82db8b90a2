// KvCache::checksum(). The checksum covers records, so that caches with different page sizes and the same contents have the same checksum.
#include <algorithm>
#include <array>

#include <tessera/extend/kv/layer_on_host.hpp>

#include "core/hasher.hpp"
#include "kv/kept_states.hpp"

namespace tessera {

std::uint64_t KvCache::checksum(std::size_t layer) const noexcept {
  if (layer >= layout().layers.size() || suspended()) return 0;
  if (layout().group_of(layer).is_recurrent()) {
    if (length() == 0) return 0;
    detail::Hasher64 state;
    std::array<std::byte, 16384> piece;
    const std::uint64_t bytes = detail::whole_layout(*this).layer(layer).shape.state_bytes;
    for (std::uint64_t at = 0; at < bytes; at += piece.size()) {
      const auto some = std::span(piece).first(std::min<std::uint64_t>(piece.size(), bytes - at));
      if (!detail::read_state(*this, layer, length(), some, at)) return 0;
      state.add(some);
    }
    return state.digest();
  }
  const auto at = kv::LayerOnHost::read(*this, layer, first_of_layer(layer), length());
  if (!at) return 0;
  detail::Hasher64 hasher;
  std::array<std::byte, 16384> records;
  const KvLayerShape& shape = detail::whole_layout(*this).layer(layer).shape;
  for (const kv::KeyOrValue part : shape.parts()) {
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const kv::HeadPart of = at->head(part, head);
      const std::uint64_t bytes = kv::record_bytes(*at->view().layout, of);
      const std::uint64_t step = std::max<std::uint64_t>(1, records.size() / bytes);
      for (std::uint64_t position = first_of_layer(layer); position < length(); position += step) {
        const std::uint64_t n = std::min(step, length() - position);
        kv::read_records(at->view(), of, position, position + n, records.data());
        hasher.add({records.data(), n * bytes});
      }
    }
  }
  return hasher.digest();
}

}  // namespace tessera
