// A block is the memory that a page has for the keys, or for the values, of one layer and one KV head. This file finds, reads and writes
// the elements of blocks.
//
// Elements lie in pairs, because kernels multiply elements of 16 or 8 bits in pairs. A pair of a K block is two dimensions of one token's
// key. A pair of a V block is one dimension of the values of two tokens. With n = Codec::pair (2 for these types, 1 for f32, which has no
// pairs), the layouts as C arrays are:
//   K  [held / n][page_tokens][n]      index: pair of dimensions, token, dimension in the pair
//   V  [page_tokens / n][held][n]      index: pair of tokens, element, token in the pair
// K and V differ so that a kernel loads neighbouring elements into the lanes of a register: for scores each lane has a token, for the
// weighted sum of values each lane has a dimension.
// `held` is the number of elements that are stored for each token. If the codec encodes number by number: one element for each dimension
// of the head. If the codec encodes several numbers together (a run, kv/codecs.hpp): the elements of all runs. If `held` is odd, the last
// element of a key is paired with a zero. If the codec has scales, one f32 for each token of the page follows the elements.
// A record is the elements of one token in a block, then the token's scale (if the codec has scales). Code that must not depend on the
// page size uses records: files, checksums, and copies from one page to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <tessera/extend/kv/kv_layout.hpp>

#include "kv/codecs.hpp"
#include "kv/rotation.hpp"

namespace tessera::kv {

// Returns the number of elements in a block, scales not counted.
template <class Codec>
[[nodiscard]] constexpr std::uint64_t block_elements(KeyOrValue part, std::uint64_t page_tokens, std::uint64_t dim) noexcept {
  const std::uint64_t held = held_elements<Codec>(dim);
  return page_tokens * (part == KeyOrValue::key ? (held + Codec::pair - 1) / Codec::pair * Codec::pair : held);
}

// Returns the bytes of a block; 0 if `type` is not a KV type.
[[nodiscard]] constexpr std::uint64_t block_bytes(DType type, KeyOrValue part, std::uint64_t page_tokens,
                                                  std::uint64_t dim) noexcept {
  std::uint64_t bytes = 0;
  visit(type, part, [&]<class C>(std::type_identity<C>) {
    bytes = block_elements<C>(part, page_tokens, dim) * sizeof(typename C::Element);
    if (C::has_scale) bytes += page_tokens * sizeof(float);
  });
  return bytes;
}

// A Slot is the place of one token in a block. It encodes, decodes and copies the token's numbers. Byte is const std::byte if the block is
// only read.
template <class Codec, KeyOrValue part, class Byte = std::byte>
class Slot {
 public:
  using Element = typename Codec::Element;

  Slot(Byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot) noexcept
      : dim_(dim),
        held_(held_elements<Codec>(dim)),
        elements_(reinterpret_cast<HeldElement*>(block) +
                  (part == KeyOrValue::key ? slot * kPair : slot / kPair * kPair * held_ + slot % kPair)),
        scale_(block + block_elements<Codec>(part, page_tokens, dim) * sizeof(Element) + slot * sizeof(float)),
        pair_stride_(part == KeyOrValue::key ? page_tokens * kPair : kPair * kPair) {}

  void encode(const float* values) const noexcept {
    if constexpr (Codec::rotates) {
      if (rotated_together(dim_) > 1) {
        alignas(64) float rotated[kMaxHeadDim];
        std::memcpy(rotated, values, dim_ * sizeof(float));
        rotate(rotated, dim_, Turn::in);
        return put(rotated);
      }
    }
    put(values);
  }
  void decode(float* values) const noexcept {
    const float scale = load_scale();
    if constexpr (kInRuns<Codec>) {
      each_run([&](std::size_t d, std::size_t n, std::size_t first) {
        Element elements[Codec::run_elements];
        float run[Codec::run];
        for (std::size_t i = 0; i < Codec::run_elements; ++i) elements[i] = *at(first + i);
        Codec::decode_run(elements, scale, run);
        std::memcpy(values + d, run, n * sizeof(float));
      });
    } else {
      for (std::size_t d = 0; d < dim_; ++d) values[d] = Codec::decode(*at(d), scale);
    }
    if constexpr (Codec::rotates) rotate(values, dim_, Turn::out);
  }
  // read() copies the token's record out of the block, write() copies `record` into the block. `record` need not be aligned.
  void read(std::byte* record) const noexcept {
    for (std::size_t i = 0; i < held_; ++i) std::memcpy(record + i * sizeof(Element), at(i), sizeof(Element));
    if constexpr (Codec::has_scale) std::memcpy(record + held_ * sizeof(Element), scale_, sizeof(float));
  }
  void write(const std::byte* record) const noexcept {
    for (std::size_t i = 0; i < held_; ++i) std::memcpy(at(i), record + i * sizeof(Element), sizeof(Element));
    if constexpr (Codec::has_scale) std::memcpy(scale_, record + held_ * sizeof(Element), sizeof(float));
    fill_pair();
  }

 private:
  using HeldElement = std::conditional_t<std::is_const_v<Byte>, const Element, Element>;

  static constexpr std::size_t kPair = Codec::pair;
  static constexpr std::size_t kRun = 64;  // numbers that one loop converts; a fixed count, so that compilers vectorise the loop

  void put(const float* values) const noexcept {
    float scale = 1.0f;
    if constexpr (Codec::has_scale) {
      scale = Codec::scale_of(values, dim_);
      std::memcpy(scale_, &scale, sizeof scale);
    }
    if constexpr (kInRuns<Codec>) {
      each_run([&](std::size_t d, std::size_t n, std::size_t first) {
        Element elements[Codec::run_elements];
        float run[Codec::run] = {};
        std::memcpy(run, values + d, n * sizeof(float));
        Codec::encode_run(run, scale, elements);
        for (std::size_t i = 0; i < Codec::run_elements; ++i) *at(first + i) = elements[i];
      });
    } else {
      for (std::size_t d = 0; d < dim_; d += kRun) {
        Element run[kRun];
        const std::size_t n = dim_ - d < kRun ? dim_ - d : kRun;
        for (std::size_t i = 0; i < n; ++i) run[i] = Codec::encode(values[d + i], scale);
        for (std::size_t i = 0; i < n; ++i) *at(d + i) = run[i];
      }
    }
    fill_pair();
  }

  // Calls fn(d, n, first) for each run of numbers. The run has dimensions [d, d + n); its encoded elements begin with element `first`.
  template <class Fn>
  void each_run(Fn fn) const noexcept {
    for (std::size_t d = 0, first = 0; d < dim_; d += Codec::run, first += Codec::run_elements) {
      fn(d, dim_ - d < Codec::run ? dim_ - d : Codec::run, first);
    }
  }

  // Returns the address of element i of this token (layouts: top of the file). In a K block the two elements of a pair both belong to this
  // token, so they are neighbours. In a V block the elements of a pair belong to two tokens, so the distance from one element of this token
  // to the next is kPair. (For f32 kPair is 1.)
  [[nodiscard]] HeldElement* at(std::size_t i) const noexcept {
    return elements_ + i / kPair * pair_stride_ + i % kPair * (part == KeyOrValue::key ? 1 : kPair);
  }
  // If a key has an odd number of elements, writes the zero that completes the last pair.
  void fill_pair() const noexcept {
    if (part == KeyOrValue::key && held_ % kPair != 0) *at(held_) = Element{};
  }
  [[nodiscard]] float load_scale() const noexcept {
    float scale = 1.0f;
    if constexpr (Codec::has_scale) std::memcpy(&scale, scale_, sizeof scale);
    return scale;
  }

  std::size_t dim_, held_;
  HeldElement* elements_;
  Byte* scale_;
  std::size_t pair_stride_;  // distance from the token's element i to its element i + kPair, counted in elements of the block
};

// Decodes the keys of n tokens of the block, beginning with token `slot`, to out  [dim][stride]: column i is token slot + i.
template <class Codec, std::size_t n>
void decode_keys(const std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot, float* out,
                 std::size_t stride) noexcept {
  if constexpr (kInRuns<Codec>) {
    for (std::size_t j = 0; j < n; ++j) {
      float key[kMaxHeadDim];
      Slot<Codec, KeyOrValue::key, const std::byte>(block, page_tokens, dim, slot + j).decode(key);
      for (std::size_t d = 0; d < dim; ++d) out[d * stride + j] = key[d];
    }
  } else {
    constexpr std::size_t kPair = Codec::pair;
    const auto* elements = reinterpret_cast<const typename Codec::Element*>(block);
    const auto* scales = reinterpret_cast<const float*>(elements + block_elements<Codec>(KeyOrValue::key, page_tokens, dim)) + slot;
    for (std::size_t d = 0; d < dim; ++d) {
      const auto* row = elements + (d / kPair * page_tokens + slot) * kPair + d % kPair;
      float* to = out + d * stride;
      for (std::size_t j = 0; j < n; ++j) {
        if constexpr (Codec::has_scale) to[j] = Codec::decode(row[j * kPair], scales[j]);
        else to[j] = Codec::decode(row[j * kPair], 1.0f);
      }
    }
    if constexpr (Codec::rotates) rotate_lanes(out, dim, stride, n, Turn::out);
  }
}

// Decodes only the last `dim` dimensions of one token's key, for a codec without a scale. Used for latent attention, where these dimensions
// of the key are the token's value. `block`: the address of the first of these dimensions in the block. That dimension must have an even
// index, because dimensions lie in pairs.
template <class Codec>
void decode_last_of_key(const std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot, float* out) noexcept {
  if constexpr (!Codec::has_scale) {
    constexpr std::size_t kPair = Codec::pair;
    const auto* elements = reinterpret_cast<const typename Codec::Element*>(block);
    for (std::size_t d = 0; d < dim; ++d) out[d] = Codec::decode(elements[(d / kPair * page_tokens + slot) * kPair + d % kPair], 1.0f);
  }
}

// Decodes the values of `n` tokens of the block, beginning with token `slot`, to out  [n][dim].
template <class Codec>
void decode_values(const std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot, std::size_t n,
                   float* out) noexcept {
  for (std::size_t j = 0; j < n; ++j) {
    Slot<Codec, KeyOrValue::value, const std::byte>(block, page_tokens, dim, slot + j).decode(out + j * dim);
  }
}

}  // namespace tessera::kv
