// The list of weight formats. A format is a type with these members:
//   dtype, block_values, block_bytes
//   packed_form              the form in which kernels have the weights in memory (packed_form.hpp)
//   unpack(block, parts)     takes a block apart into the parts of that form. F32, F16 and BF16 do not have it
//   open(block, parts)       instead of unpack(), if the packed form consists of the file's own blocks (kept)
//   decode(block, values)    decodes one block to `block_values` floats, by the exact rule that the format's header states
//   writing                  facts for programs that write files (Writing); only if files can be written in the format
//   encode(values, block)    the reverse of decode(); only with `writing`
// To add a format: write its header and put it into `All`.
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

// All formats, ordered by bits per value, the most bits first. Tables show formats in this order.
using All = List<F32, F16, BF16, Q8_0, Q6_K, Q5_1, Q5_K, Q5_0, Q4_1, Q4_K, Q4_0, IQ4_NL, NVFP4, MXFP4, IQ4_XS, Q3_K, IQ3_S,
                 IQ3_XXS, Q2_K, IQ2_S, IQ2_XS, IQ2_XXS, TQ2_0, IQ1_M, TQ1_0, IQ1_S>;

// true: files can be written in the format.
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

// Calls fn(std::type_identity<Format>{}) for the format of `type`. Returns false if `type` is not a weight format.
template <class Fn>
constexpr bool visit(DType type, Fn&& fn) {
  return detail::visit(type, fn, All{});
}

// The struct into which kernels open a block of F, a format whose blocks they keep.
template <class F>
using Open = std::conditional_t<F::block_values == 256, OpenSuperblock, OpenBlock>;

// Calls fn(std::type_identity<Format>{}) for the format whose blocks the form keeps. Returns false if the form keeps no blocks.
template <class Fn>
constexpr bool visit_kept(PackedForm form, Fn&& fn) {
  return detail::visit_kept(form, fn, All{});
}

// Returns the form in which kernels have weights of `type`; PackedForm::count if `type` is not a weight format.
[[nodiscard]] constexpr PackedForm packed_form_of(DType type) noexcept {
  PackedForm form = PackedForm::count;
  visit(type, [&]<class F>(std::type_identity<F>) { form = F::packed_form; });
  return form;
}

}  // namespace tessera::formats
