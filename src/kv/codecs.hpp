// The list of KV types, with the codec of each type for keys and for values. A codec is a type with these members:
//   Element              the type of a stored element
//   has_scale            true: each token and head has one f32 scale
//   rotates              true: numbers are rotated before they are encoded, and rotated back when decoded (kv/rotation.hpp)
//   pair                 how many elements kernels multiply at once, 2 or 1. They lie side by side in a page (kv/block.hpp)
//   scale_of(values, n)  only if has_scale: the scale for these numbers
// A codec that encodes each number by itself also has
//   encode(value, scale), decode(element, scale)
// A codec that encodes `run` numbers together, as `run_elements` elements (both even), has instead
//   run, run_elements
//   encode_run(values, scale, elements), decode_run(elements, scale, values)
// All members are constexpr, because CUDA kernels call them too.
// To add a codec: write its header, and add a type that uses it to `All`.
#pragma once

#include <cstdint>
#include <type_traits>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/kv/kv_layout.hpp>

#include "kv/codecs/bf16.hpp"
#include "kv/codecs/f16.hpp"
#include "kv/codecs/f32.hpp"
#include "kv/codecs/fp8.hpp"
#include "kv/codecs/int4.hpp"
#include "kv/codecs/int8.hpp"

namespace tessera::kv {

template <class KeyCodec, class ValueCodec = KeyCodec>
struct Codecs {
  using Key = KeyCodec;
  using Value = ValueCodec;
};
template <DType kType, class OfType>
struct Type {
  static constexpr DType dtype = kType;
  using Key = typename OfType::Key;
  using Value = typename OfType::Value;
};

template <class... Types>
struct List {};

using All = List<Type<DType::f32, Codecs<F32>>, Type<DType::f16, Codecs<F16>>, Type<DType::bf16, Codecs<BF16>>,
                 Type<DType::int8, Codecs<Int8>>, Type<DType::fp8, Codecs<Fp8>>, Type<DType::int4, Codecs<Int4>>,
                 Type<DType::k8v4, Codecs<Int8, Int4>>>;

// true: the codec encodes numbers in runs (Codec::run).
template <class Codec>
inline constexpr bool kInRuns = requires { Codec::run; };

// Returns how many elements the codec stores for one token's key (or value) in one head of `dim` dimensions. A codec that encodes number by
// number stores `dim` elements. A codec that encodes in runs rounds `dim` up to whole runs, and stores the elements of these runs.
template <class Codec>
[[nodiscard, gnu::always_inline]] constexpr std::uint64_t held_elements(std::uint64_t dim) noexcept {
  if constexpr (kInRuns<Codec>) return (dim + Codec::run - 1) / Codec::run * Codec::run_elements;
  else return dim;
}

namespace detail {
template <class Fn, class... Types>
constexpr bool visit(DType type, KeyOrValue part, Fn&& fn, List<Types...>) {
  const auto call = [&]<class T>(std::type_identity<T>) {
    if (part == KeyOrValue::key) fn(std::type_identity<typename T::Key>{});
    else fn(std::type_identity<typename T::Value>{});
    return true;
  };
  return ((type == Types::dtype && call(std::type_identity<Types>{})) || ...);
}
}  // namespace detail

// Calls fn(std::type_identity<Codec>{}) with the codec for keys (or values) of `type`. Returns false if `type` is not a KV type.
template <class Fn>
constexpr bool visit(DType type, KeyOrValue part, Fn&& fn) {
  return detail::visit(type, part, fn, All{});
}

[[nodiscard]] constexpr bool is_kv_type(DType type) noexcept {
  return visit(type, KeyOrValue::key, [](auto) {});
}

// Returns whether keys (or values) of `type` are stored rotated (kv/rotation.hpp).
[[nodiscard]] constexpr bool rotates(DType type, KeyOrValue part) noexcept {
  bool found = false;
  visit(type, part, [&]<class C>(std::type_identity<C>) { found = C::rotates; });
  return found;
}

// Returns the bytes of a record: one token's key (or value) of one head, with its scale. Returns 0 if `type` is not a KV type.
[[nodiscard]] constexpr std::uint64_t record_bytes(DType type, KeyOrValue part, std::uint64_t dim) noexcept {
  std::uint64_t bytes = 0;
  visit(type, part, [&]<class C>(std::type_identity<C>) {
    bytes = held_elements<C>(dim) * sizeof(typename C::Element) + (C::has_scale ? sizeof(float) : 0);
  });
  return bytes;
}

}  // namespace tessera::kv
