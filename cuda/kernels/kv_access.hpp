// Reads and writes one token's key or value of one head, at the addresses of kv.hpp.
#pragma once

#include "cuda/kernels/device.hpp"
#include "cuda/kernels/kv.hpp"
#include "kv/codecs/best_scale.hpp"
#include "kv/rotation.hpp"

namespace tessera::cuda {

template <class T>
TESSERA_DEVICE T* at_address(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

// Stands for the KV type with INT8 keys and INT4 values. Kernels are templates of one codec, so this pair of codecs needs one name.
struct K8V4 {};
template <class Codec>
struct CodecsOf {
  using Key = Codec;
  using Value = Codec;
};
template <>
struct CodecsOf<K8V4> {
  using Key = kv::Int8;
  using Value = kv::Int4;
};
template <class Codec, kv::KeyOrValue part>
using PartCodec = std::conditional_t<part == kv::KeyOrValue::key, typename CodecsOf<Codec>::Key, typename CodecsOf<Codec>::Value>;

// Returns the address of the page that has a position; 0 if the page was freed.
TESSERA_DEVICE std::uint64_t page_at(const std::uint64_t* pages, const KvLayer& layer, std::uint64_t position) {
  return pages[kv_page_of(layer, position)];
}

// Loads and stores one token's key or value of one head. The token's page must exist. Elements are stored one by one. To store the two
// elements of a pair together would be a race: a pair of values belongs to two tokens, and another warp may store the other token's element
// at the same time.
template <class Codec, kv::KeyOrValue part>
class KvToken {
 public:
  using Element = typename Codec::Element;

  TESSERA_DEVICE KvToken(const std::uint64_t* pages, const KvLayer& layer, std::uint32_t head, std::uint64_t position)
      : layer_(layer),
        block_(kv_block(layer, part, page_at(pages, layer, position), head)),
        slot_(kv_slot_of(layer, position)) {}

  TESSERA_DEVICE Element load(std::uint32_t d) const { return at_address<const Element>(block_)[index(d)]; }
  TESSERA_DEVICE void store(std::uint32_t d, Element element) const { at_address<Element>(block_)[index(d)] = element; }
  // If a key has an odd number of elements, writes a zero after the last one, to complete the pair.
  TESSERA_DEVICE void store_pad() const {
    const auto held = static_cast<std::uint32_t>(kv::held_elements<Codec>(layer_.key_dim));
    if (part == kv::KeyOrValue::key && held % Codec::pair != 0) store(held, Element{});
  }
  // Returns number d, decoded but not rotated.
  TESSERA_DEVICE float number(std::uint32_t d, float scale) const {
    if constexpr (kv::kInRuns<Codec>) {  // kv::Int4::decode_run()
      constexpr auto kRun = static_cast<std::uint32_t>(Codec::run), kGroup = kRun / 2;
      const std::uint32_t first = d / kRun * static_cast<std::uint32_t>(Codec::run_elements), i = d % kRun;
      const unsigned half = load(first + i % kGroup) >> (i / kGroup * 4) & 15u;
      const int n = static_cast<int>(half ^ 8u) - 8, m = static_cast<std::int8_t>(load(first + kGroup + i / kGroup));
      return static_cast<float>(n * m) * scale;
    } else {
      return Codec::decode(load(d), scale);
    }
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

// The numbers of one head in a warp's registers: number d is in lane d mod 32. rotate() has the order of operations of kv/rotation.hpp.
class WarpHead {
 public:
  static constexpr std::uint32_t kMost = 512;  // kHeadClasses

  TESSERA_DEVICE WarpHead(const float* from, std::uint32_t dim) : dim_(dim) {
#pragma unroll
    for (unsigned i = 0; i < kNumbers; ++i) at_[i] = index(i) < dim ? from[index(i)] : 0.0f;
  }
  TESSERA_DEVICE void rotate(kv::Turn turn) {
    const auto n = static_cast<std::uint32_t>(kv::rotated_together(dim_));
    if (n == 1) return;  // true for all lanes of the warp
    for (std::uint32_t apart = 1; apart < n && apart < kWarp; apart *= 2) {
      const bool is_other = (lane_id() & apart) != 0;
#pragma unroll
      for (unsigned i = 0; i < kNumbers; ++i) {
        const float across = shuffle_xor(at_[i], static_cast<int>(apart));
        at_[i] = is_other ? across - at_[i] : at_[i] + across;
      }
    }
#pragma unroll
    for (unsigned apart = 1; apart < kNumbers; apart *= 2) {
      if (apart * kWarp >= n) break;
#pragma unroll
      for (unsigned i = 0; i < kNumbers; ++i) {
        if ((i & apart) != 0) continue;
        const float a = at_[i], b = at_[i + apart];
        at_[i] = a + b;
        at_[i + apart] = a - b;
      }
    }
    const float factor = kv::rotation_factor(n, turn);
#pragma unroll
    for (unsigned i = 0; i < kNumbers; ++i) at_[i] = at_[i] * factor;
  }
  // Calls fn(d, number d) for each number that this lane has.
  template <class Fn>
  TESSERA_DEVICE void each(Fn fn) const {
#pragma unroll
    for (unsigned i = 0; i < kNumbers; ++i) {
      if (index(i) < dim_) fn(index(i), at_[i]);
    }
  }

  // Calls fn(r, run) for each run of 32 numbers; every lane gets all numbers of the run. Numbers beyond the head's end are 0.
  template <class Fn>
  TESSERA_DEVICE void each_run(Fn fn) const {
#pragma unroll 1  // fn is long: a copy for each run takes the compiler minutes
    for (unsigned i = 0; i < kNumbers; ++i) {
      if (i * kWarp >= dim_) break;  // true for all lanes of the warp
      float run[kWarp];
#pragma unroll
      for (unsigned k = 0; k < kWarp; ++k) run[k] = shuffle(at_[i], static_cast<int>(k));
      fn(i, run);
    }
  }

 private:
  static constexpr unsigned kNumbers = kMost / kWarp;
  [[nodiscard]] TESSERA_DEVICE static std::uint32_t index(unsigned i) { return i * kWarp + lane_id(); }

  float at_[kNumbers];
  std::uint32_t dim_;
};

// Rotates one head in place. Called by a whole warp, for memory that no other warp uses meanwhile.
TESSERA_DEVICE void warp_rotate(float* head, std::uint32_t dim, kv::Turn turn) {
  WarpHead numbers(head, dim);
  sync_warp();
  numbers.rotate(turn);
  numbers.each([&](std::uint32_t d, float x) { head[d] = x; });
  sync_warp();
}

// Returns the scale with which the codec encodes a head's numbers; it depends on their largest magnitude. Magnitudes are compared as
// integers: then the result does not depend on the order of comparisons, and infinity and NaN count as the largest.
template <class Codec>
TESSERA_DEVICE float warp_scale(const WarpHead& head) {
  std::uint32_t largest = 0;
  head.each([&](std::uint32_t, float x) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  });
  for (int distance = 16; distance > 0; distance /= 2) {
    const std::uint32_t other = shuffle_xor(largest, distance);
    largest = other > largest ? other : largest;
  }
  if constexpr (kv::kInRuns<Codec>) {
    const float size = std::bit_cast<float>(largest);
    return Codec::scale_of(&size, 1);
  } else if constexpr (requires { Codec::scales; }) {
    return kv::best_scale<Codec>(std::bit_cast<float>(largest), [&](float per_unit) {
      float lost = 0.0f;
      head.each([&](std::uint32_t, float x) { lost += Codec::lost(x, per_unit); });
      return warp_sum(lost);  // in the order of kv::lost_of()
    });
  } else {
    return Codec::scale_from(std::bit_cast<float>(largest));
  }
}

// Encodes one token's `values`, with the same bits as the codec and kv::Slot on the host. Called by a whole warp.
template <class Codec, kv::KeyOrValue part>
TESSERA_DEVICE void warp_encode(const KvToken<Codec, part>& token, const float* values, std::uint32_t dim) {
  float scale = 1.0f;
  if constexpr (kv::kInRuns<Codec>) {
    WarpHead head(values, dim);
    head.rotate(kv::Turn::in);
    scale = warp_scale<Codec>(head);
    head.each_run([&](unsigned r, const float* run) {
      if (lane_id() != 0) return;
      typename Codec::Element elements[Codec::run_elements];
      Codec::encode_run(run, scale, elements);
      for (unsigned i = 0; i < Codec::run_elements; ++i) token.store(r * static_cast<unsigned>(Codec::run_elements) + i, elements[i]);
    });
    if (lane_id() == 0) token.store_scale(scale);
    return;
  } else {
    const auto put = [&](std::uint32_t d, float x) { token.store(d, Codec::encode(x, scale)); };
    if constexpr (Codec::has_scale) {
      WarpHead head(values, dim);
      if constexpr (Codec::rotates) head.rotate(kv::Turn::in);
      scale = warp_scale<Codec>(head);
      head.each(put);
    } else {
      for (std::uint32_t d = lane_id(); d < dim; d += kWarp) put(d, values[d]);
    }
    if (lane_id() == 0) {
      token.store_pad();
      token.store_scale(scale);
    }
  }
}

}  // namespace tessera::cuda
