// How keys and values lie in a block, which holds page_tokens tokens of one head. Elements that a product of pairs
// multiplies and adds at once lie side by side: n = Codec::pair of them, 2 of 16 or 8 bits, 1 of f32.
//   K  [key_dim / n][page_tokens][n]    the lanes of a score kernel are keys; an odd last dimension pairs with a zero
//   V  [page_tokens / n][value_dim][n]  the lanes of the weighted sum are dimensions
// and behind the elements, of a codec with scales, [page_tokens] of f32.
// A record is one token's elements, then its scale: the form that does not know pages, for files, checksums and moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tessera/kv/kv_layout.hpp>

#include "kv/codecs.hpp"
#include "kv/rotation.hpp"

namespace tessera::kv {

// Elements of a block before its scales.
template <class Codec>
[[nodiscard]] constexpr std::uint64_t block_elements(Part part, std::uint64_t page_tokens, std::uint64_t dim) noexcept {
  return page_tokens * (part == Part::key ? (dim + Codec::pair - 1) / Codec::pair * Codec::pair : dim);
}

// 0 if `type` is not a KV type.
[[nodiscard]] constexpr std::uint64_t block_bytes(DType type, Part part, std::uint64_t page_tokens,
                                                  std::uint64_t dim) noexcept {
  std::uint64_t bytes = 0;
  visit(type, [&]<class C>(std::type_identity<C>) {
    bytes = block_elements<C>(part, page_tokens, dim) * sizeof(typename C::Element);
    if (C::has_scale) bytes += page_tokens * sizeof(float);
  });
  return bytes;
}

// One token's place in a block.
template <class Codec, Part part>
class Slot {
 public:
  using Element = typename Codec::Element;

  Slot(std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot) noexcept
      : elements_(reinterpret_cast<Element*>(block) +
                  (part == Part::key ? slot * kPair : slot / kPair * kPair * dim + slot % kPair)),
        scale_(block + block_elements<Codec>(part, page_tokens, dim) * sizeof(Element) + slot * sizeof(float)),
        pair_stride_(part == Part::key ? page_tokens * kPair : kPair * kPair),
        dim_(dim) {}

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
    for (std::size_t d = 0; d < dim_; ++d) values[d] = Codec::decode(*at(d), scale);
    if constexpr (Codec::rotates) rotate(values, dim_, Turn::out);
  }
  // Records have no alignment.
  void read(std::byte* record) const noexcept {
    for (std::size_t d = 0; d < dim_; ++d) std::memcpy(record + d * sizeof(Element), at(d), sizeof(Element));
    if constexpr (Codec::has_scale) std::memcpy(record + dim_ * sizeof(Element), scale_, sizeof(float));
  }
  void write(const std::byte* record) const noexcept {
    for (std::size_t d = 0; d < dim_; ++d) std::memcpy(at(d), record + d * sizeof(Element), sizeof(Element));
    if constexpr (Codec::has_scale) std::memcpy(scale_, record + dim_ * sizeof(Element), sizeof(float));
    fill_pair();
  }

 private:
  static constexpr std::size_t kPair = Codec::pair;
  static constexpr std::size_t kRun = 64;  // converted at a time, side by side: compilers vectorise that

  void put(const float* values) const noexcept {
    float scale = 1.0f;
    if constexpr (Codec::has_scale) {
      scale = Codec::scale_of(values, dim_);
      std::memcpy(scale_, &scale, sizeof scale);
    }
    for (std::size_t d = 0; d < dim_; d += kRun) {
      Element run[kRun];
      const std::size_t n = dim_ - d < kRun ? dim_ - d : kRun;
      for (std::size_t i = 0; i < n; ++i) run[i] = Codec::encode(values[d + i], scale);
      for (std::size_t i = 0; i < n; ++i) *at(d + i) = run[i];
    }
    fill_pair();
  }

  // A key's pair lies together; of a value, the next token's element lies between two of this one's.
  [[nodiscard]] Element* at(std::size_t d) const noexcept {
    return elements_ + d / kPair * pair_stride_ + d % kPair * (part == Part::key ? 1 : kPair);
  }
  // What a key's odd last element is paired with.
  void fill_pair() const noexcept {
    if (part == Part::key && dim_ % kPair != 0) *at(dim_) = Element{};
  }
  [[nodiscard]] float load_scale() const noexcept {
    float scale = 1.0f;
    if constexpr (Codec::has_scale) std::memcpy(&scale, scale_, sizeof scale);
    return scale;
  }

  Element* elements_;
  std::byte* scale_;
  std::size_t pair_stride_;  // elements
  std::size_t dim_;
};

// Decodes the keys of n slots from `slot` on: out [dim][stride].
template <class Codec, std::size_t n>
void decode_keys(const std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot, float* out,
                 std::size_t stride) noexcept {
  constexpr std::size_t kPair = Codec::pair;
  const auto* elements = reinterpret_cast<const typename Codec::Element*>(block);
  const auto* scales = reinterpret_cast<const float*>(elements + block_elements<Codec>(Part::key, page_tokens, dim)) + slot;
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

// Decodes the last `dim` dimensions of one slot's key, of a codec without a scale: the first of them, which has an even place, is
// at `block`.
template <class Codec>
void decode_last_of_key(const std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot, float* out) noexcept {
  constexpr std::size_t kPair = Codec::pair;
  const auto* elements = reinterpret_cast<const typename Codec::Element*>(block);
  for (std::size_t d = 0; d < dim; ++d) out[d] = Codec::decode(elements[(d / kPair * page_tokens + slot) * kPair + d % kPair], 1.0f);
}

// Decodes the values of `n` slots from `slot` on: out [n][dim].
template <class Codec>
void decode_values(const std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot, std::size_t n,
                   float* out) noexcept {
  constexpr std::size_t kPair = Codec::pair;
  const auto* elements = reinterpret_cast<const typename Codec::Element*>(block);
  const auto* scales = reinterpret_cast<const float*>(elements + block_elements<Codec>(Part::value, page_tokens, dim));
  for (std::size_t j = 0; j < n; ++j) {
    const auto* row = elements + (slot + j) / kPair * kPair * dim + (slot + j) % kPair;
    float scale = 1.0f;
    if constexpr (Codec::has_scale) scale = scales[slot + j];
    for (std::size_t d = 0; d < dim; ++d) out[j * dim + d] = Codec::decode(row[d * kPair], scale);
    if constexpr (Codec::rotates) rotate(out + j * dim, dim, Turn::out);
  }
}

}  // namespace tessera::kv
