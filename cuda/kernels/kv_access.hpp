// How kernels reach what kv.hpp finds: one token's key or value of one head.
#pragma once

#include "cuda/kernels/device.hpp"
#include "cuda/kernels/kv.hpp"

namespace tessera::cuda {

template <class T>
TESSERA_DEVICE T* at_address(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

// 0 if the page was given back.
TESSERA_DEVICE std::uint64_t page_at(const std::uint64_t* pages, const KvLayer& layer, std::uint64_t position) {
  return pages[kv_page_of(layer, position)];
}

// One token's key or value of one head in a page that is held. Elements are stored one by one: the next token's, which
// share a value's pair, may be another warp's at the same time.
template <class Codec, kv::Part part>
class KvToken {
 public:
  using Element = typename Codec::Element;

  TESSERA_DEVICE KvToken(const std::uint64_t* pages, const KvLayer& layer, std::uint32_t head, std::uint64_t position)
      : layer_(layer),
        block_(kv_block(layer, part, page_at(pages, layer, position), head)),
        slot_(kv_slot_of(layer, position)) {}

  TESSERA_DEVICE Element load(std::uint32_t d) const { return at_address<const Element>(block_)[index(d)]; }
  TESSERA_DEVICE void store(std::uint32_t d, Element element) const { at_address<Element>(block_)[index(d)] = element; }
  // What a key's odd last element is paired with.
  TESSERA_DEVICE void store_pad() const {
    if (part == kv::Part::key && layer_.key_dim % Codec::pair != 0) store(layer_.key_dim, Element{});
  }
  TESSERA_DEVICE float scale() const {
    if constexpr (Codec::has_scale) return at_address<const float>(block_ + kv_scales<Codec, part>(layer_))[slot_];
    else return 1.0f;
  }
  TESSERA_DEVICE void store_scale(float scale) const {
    if constexpr (Codec::has_scale) at_address<float>(block_ + kv_scales<Codec, part>(layer_))[slot_] = scale;
  }

 private:
  TESSERA_DEVICE std::uint32_t index(std::uint32_t d) const { return kv_element<Codec, part>(layer_, slot_, d); }

  const KvLayer& layer_;
  std::uint64_t block_;
  std::uint32_t slot_;
};

// The codec's scale of `values`, found by a warp: a largest magnitude does not depend on who looks first. Magnitudes
// are compared as integers, among which an infinity and the NaNs are the largest.
template <class Codec>
TESSERA_DEVICE float warp_scale(const float* values, std::uint32_t dim) {
  if constexpr (Codec::has_scale) {
    std::uint32_t largest = 0;
    for (std::uint32_t d = lane_id(); d < dim; d += kWarp) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[d]) & 0x7fffffffu;
      largest = magnitude > largest ? magnitude : largest;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      const std::uint32_t other = shuffle_xor(largest, distance);
      largest = other > largest ? other : largest;
    }
    return Codec::scale_from(std::bit_cast<float>(largest));
  } else {
    return 1.0f;
  }
}

// By a warp: encodes one token's `values` as the codec and kv::Slot do.
template <class Codec, kv::Part part>
TESSERA_DEVICE void warp_encode(const KvToken<Codec, part>& token, const float* values, std::uint32_t dim) {
  const float scale = warp_scale<Codec>(values, dim);
  for (std::uint32_t d = lane_id(); d < dim; d += kWarp) token.store(d, Codec::encode(values[d], scale));
  if (lane_id() == 0) {
    token.store_pad();
    token.store_scale(scale);
  }
}

}  // namespace tessera::cuda
