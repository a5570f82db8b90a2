// The list of KV types. A codec is a type with
//   dtype, Element, has_scale,
//   rotates              what is encoded has been rotated (kv/rotation.hpp), and what is decoded is rotated back
//   pair                 elements that lie side by side in a page for its kernels: kv/block.hpp
//   scale_of(values, n)      only if has_scale: one f32 for each token and head
//   encode(value, scale), decode(element, scale)
// All of it is constexpr, so that kernels of nvcc can call it.
// To add one: write its header and put it into `All`.
#pragma once

#include <cstdint>
#include <type_traits>

#include <tessera/core/dtype.hpp>

#include "kv/codecs/bf16.hpp"
#include "kv/codecs/f16.hpp"
#include "kv/codecs/f32.hpp"
#include "kv/codecs/int8.hpp"

namespace tessera::kv {

template <class... Codecs>
struct List {};

using All = List<F32, F16, BF16, Int8>;

namespace detail {
template <class Fn, class... Codecs>
constexpr bool visit(DType type, Fn&& fn, List<Codecs...>) {
  return ((type == Codecs::dtype ? (fn(std::type_identity<Codecs>{}), true) : false) || ...);
}
}  // namespace detail

// Calls fn(std::type_identity<Codec>{}) for the codec of `type`; false if a KV cache cannot hold the type.
template <class Fn>
constexpr bool visit(DType type, Fn&& fn) {
  return detail::visit(type, fn, All{});
}

[[nodiscard]] constexpr bool is_kv_type(DType type) noexcept {
  return visit(type, [](auto) {});
}

// Whether what is held of `type` is rotated (kv/rotation.hpp).
[[nodiscard]] constexpr bool rotates(DType type) noexcept {
  bool found = false;
  visit(type, [&]<class C>(std::type_identity<C>) { found = C::rotates; });
  return found;
}

// Bytes of one token's key (or value) of one head, its scale included. 0 if `type` is not a KV type.
[[nodiscard]] constexpr std::uint64_t record_bytes(DType type, std::uint64_t head_dim) noexcept {
  std::uint64_t bytes = 0;
  visit(type, [&]<class C>(std::type_identity<C>) {
    bytes = head_dim * sizeof(typename C::Element) + (C::has_scale ? sizeof(float) : 0);
  });
  return bytes;
}

}  // namespace tessera::kv
