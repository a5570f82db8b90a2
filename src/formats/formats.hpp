// The list of weight formats. A format is a type with
//   dtype, block_values, block_bytes,
//   packed_form: how kernels hold it, and but for plain numbers unpack(block, parts) into that form's parts, or of the forms
//   that keep blocks open(block, parts),
//   decode(block, values): one block, `block_values` floats; exact rules in each header,
//   and if it can be written, `writing` and encode(values, block).
// To add one: write its header and put it into `All`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/bf16.hpp"
#include "formats/f16.hpp"
#include "formats/f32.hpp"
#include "formats/quants/fp4.hpp"
#include "formats/quants/iq1.hpp"
#include "formats/quants/iq2.hpp"
#include "formats/quants/iq3.hpp"
#include "formats/quants/iq4_nl.hpp"
#include "formats/quants/iq4_xs.hpp"
#include "formats/quants/q2_k.hpp"
#include "formats/quants/q3_k.hpp"
#include "formats/quants/q4_0.hpp"
#include "formats/quants/q4_1.hpp"
#include "formats/quants/q4_k.hpp"
#include "formats/quants/q5_0.hpp"
#include "formats/quants/q5_1.hpp"
#include "formats/quants/q5_k.hpp"
#include "formats/quants/q6_k.hpp"
#include "formats/quants/q8_0.hpp"
#include "formats/quants/tq.hpp"

namespace tessera::formats {

template <class... Formats>
struct List {};

// Those of most bits a value first: tables show them in this order.
using All = List<F32, F16, BF16, Q8_0, Q6_K, Q5_1, Q5_K, Q5_0, Q4_1, Q4_K, Q4_0, IQ4_NL, NVFP4, MXFP4, IQ4_XS, Q3_K, IQ3_S,
                 IQ3_XXS, Q2_K, IQ2_S, IQ2_XS, IQ2_XXS, TQ2_0, IQ1_M, TQ1_0, IQ1_S>;

// Whether files can be written in it.
template <class F>
inline constexpr bool has_encoder = requires { F::writing; };

template <class... Formats>
void for_each(List<Formats...>, auto&& fn) {
  (fn(std::type_identity<Formats>{}), ...);
}

namespace detail {
template <class Fn, class... Formats>
constexpr bool visit(DType type, Fn&& fn, List<Formats...>) {
  return ((type == Formats::dtype ? (fn(std::type_identity<Formats>{}), true) : false) || ...);
}
template <class Fn, class... Formats>
constexpr bool visit_kept(PackedForm form, Fn&& fn, List<Formats...>) {
  const auto one = [&]<class F>(std::type_identity<F> format) {
    if constexpr (keeps_blocks(F::packed_form)) {
      if (form == F::packed_form) return fn(format), true;
    }
    return false;
  };
  return (one(std::type_identity<Formats>{}) || ...);
}
}  // namespace detail

// Calls fn(std::type_identity<Format>{}) for the format of `type`; false if it is not a weight format.
template <class Fn>
constexpr bool visit(DType type, Fn&& fn) {
  return detail::visit(type, fn, All{});
}

// The parts that a format's blocks are opened into, of the forms that keep them.
template <class F>
using Open = std::conditional_t<F::block_values == 256, OpenSuperblock, OpenBlock>;

// Calls fn(std::type_identity<Format>{}) for the format that a form keeps the blocks of; false for other forms.
template <class Fn>
constexpr bool visit_kept(PackedForm form, Fn&& fn) {
  return detail::visit_kept(form, fn, All{});
}

// The form that kernels hold weights of `type` in; PackedForm::count if it is not a weight format.
[[nodiscard]] constexpr PackedForm packed_form_of(DType type) noexcept {
  PackedForm form = PackedForm::count;
  visit(type, [&]<class F>(std::type_identity<F>) { form = F::packed_form; });
  return form;
}

}  // namespace tessera::formats
