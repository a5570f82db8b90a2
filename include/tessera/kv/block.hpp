// How keys and values lie in a block, which holds page_tokens tokens of one head:
//   K  [head_dim][page_tokens] elements   the lanes of a score kernel are keys
//   V  [page_tokens][head_dim] elements   the lanes of the weighted sum are dimensions
// and behind the elements, of a codec with scales, [page_tokens] of f32.
// A record is one token's elements, then its scale: the form that does not know pages, for files, checksums and moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tessera/kv/codecs.hpp>

namespace tessera::kv {

enum class Part : std::uint8_t { key = 0, value = 1 };

// One token's place in a block.
template <class Codec, Part part>
class Slot {
 public:
  using Element = typename Codec::Element;

  Slot(std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot) noexcept
      : elements_(reinterpret_cast<Element*>(block) + (part == Part::key ? slot : slot * dim)),
        scale_(block + page_tokens * dim * sizeof(Element) + slot * sizeof(float)),
        stride_(part == Part::key ? page_tokens : 1),
        dim_(dim) {}

  void encode(const float* values) const noexcept {
    float scale = 1.0f;
    if constexpr (Codec::has_scale) {
      scale = Codec::scale_of(values, dim_);
      std::memcpy(scale_, &scale, sizeof scale);
    }
    for (std::size_t d = 0; d < dim_; ++d) elements_[d * stride_] = Codec::encode(values[d], scale);
  }
  void decode(float* values) const noexcept {
    const float scale = load_scale();
    for (std::size_t d = 0; d < dim_; ++d) values[d] = Codec::decode(elements_[d * stride_], scale);
  }
  // Records have no alignment.
  void read(std::byte* record) const noexcept {
    for (std::size_t d = 0; d < dim_; ++d) std::memcpy(record + d * sizeof(Element), elements_ + d * stride_, sizeof(Element));
    if constexpr (Codec::has_scale) std::memcpy(record + dim_ * sizeof(Element), scale_, sizeof(float));
  }
  void write(const std::byte* record) const noexcept {
    for (std::size_t d = 0; d < dim_; ++d) std::memcpy(elements_ + d * stride_, record + d * sizeof(Element), sizeof(Element));
    if constexpr (Codec::has_scale) std::memcpy(scale_, record + dim_ * sizeof(Element), sizeof(float));
  }

 private:
  [[nodiscard]] float load_scale() const noexcept {
    float scale = 1.0f;
    if constexpr (Codec::has_scale) std::memcpy(&scale, scale_, sizeof scale);
    return scale;
  }

  Element* elements_;
  std::byte* scale_;
  std::size_t stride_;
  std::size_t dim_;
};

// Decodes the keys of n slots from `slot` on: out [dim][stride].
template <class Codec, std::size_t n>
void decode_keys(const std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot, float* out,
                 std::size_t stride) noexcept {
  const auto* elements = reinterpret_cast<const typename Codec::Element*>(block);
  const auto* scales = reinterpret_cast<const float*>(elements + dim * page_tokens) + slot;
  for (std::size_t d = 0; d < dim; ++d) {
    const auto* row = elements + d * page_tokens + slot;
    float* to = out + d * stride;
    for (std::size_t j = 0; j < n; ++j) {
      if constexpr (Codec::has_scale) to[j] = Codec::decode(row[j], scales[j]);
      else to[j] = Codec::decode(row[j], 1.0f);
    }
  }
}

// Decodes the values of `n` slots from `slot` on: out [n][dim].
template <class Codec>
void decode_values(const std::byte* block, std::size_t page_tokens, std::size_t dim, std::size_t slot, std::size_t n,
                   float* out) noexcept {
  const auto* elements = reinterpret_cast<const typename Codec::Element*>(block) + slot * dim;
  if constexpr (Codec::has_scale) {
    const auto* scales = reinterpret_cast<const float*>(block + page_tokens * dim * sizeof(typename Codec::Element)) + slot;
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t d = 0; d < dim; ++d) out[j * dim + d] = Codec::decode(elements[j * dim + d], scales[j]);
    }
  } else {
    for (std::size_t i = 0; i < n * dim; ++i) out[i] = Codec::decode(elements[i], 1.0f);
  }
}

}  // namespace tessera::kv
