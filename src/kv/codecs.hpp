// The list of KV types, with the codec of each for keys and for values. A codec is a type with
//   Element, has_scale
//   rotates              numbers are rotated before they are encoded, and rotated back when they are decoded (kv/rotation.hpp)
//   pair                 elements that lie side by side in a page for its kernels: kv/block.hpp
//   scale_of(values, n)      only if has_scale: one f32 for each token and head
//   encode(value, scale), decode(element, scale)
// or, if `run` numbers are encoded together as run_elements elements,
//   run, run_elements    both even
//   encode_run(values, scale, elements), decode_run(elements, scale, values)
// All members are constexpr, so that kernels of nvcc can call them.
// To add a codec: write its header and put a type that uses it into `All`.
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

// true: the codec encodes numbers in runs.
template <class Codec>
inline constexpr bool kInRuns = requires { Codec::run; };

// Returns the elements of one token's key (or value) of one head.
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

// Calls fn(std::type_identity<Codec>{}) with the codec of keys or values of `type`. Returns false if a KV cache cannot hold the type.
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

// Returns the bytes of one token's key (or value) of one head, its scale included; 0 if `type` is not a KV type.
[[nodiscard]] constexpr std::uint64_t record_bytes(DType type, KeyOrValue part, std::uint64_t dim) noexcept {
  std::uint64_t bytes = 0;
  visit(type, part, [&]<class C>(std::type_identity<C>) {
    bytes = held_elements<C>(dim) * sizeof(typename C::Element) + (C::has_scale ? sizeof(float) : 0);
  });
  return bytes;
}

}  // namespace tessera::kv
