// The native registers of ARMv8, with or without dotprod, below simd.hpp.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace tessera::cpu::TESSERA_ISA::native {

inline constexpr std::size_t kBytes = 16;
inline constexpr std::size_t kNames = 32;
inline constexpr bool kCentredBytes = true, kWords = false;
#ifdef __ARM_FEATURE_DOTPROD
inline constexpr bool kPairs = false;
#else
inline constexpr bool kPairs = true;
#endif

using F = float __attribute__((vector_size(kBytes)));
using I = std::int32_t __attribute__((vector_size(kBytes)));
using U = std::uint32_t __attribute__((vector_size(kBytes)));
using B = std::uint8_t __attribute__((vector_size(kBytes)));
using I4 = std::int32_t __attribute__((vector_size(16)));

TESSERA_INLINE F fma(F a, F b, F c) { return (F)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
TESSERA_INLINE F larger(F a, F b) {
  return (F)vbslq_f32(vcgtq_f32((float32x4_t)a, (float32x4_t)b), (float32x4_t)a, (float32x4_t)b);
}
TESSERA_INLINE F smaller(F a, F b) {
  return (F)vbslq_f32(vcltq_f32((float32x4_t)a, (float32x4_t)b), (float32x4_t)a, (float32x4_t)b);
}
TESSERA_INLINE I max(I a, I b) { return (I)vmaxq_s32((int32x4_t)a, (int32x4_t)b); }
TESSERA_INLINE F to_float(I a) { return (F)vcvtq_f32_s32((int32x4_t)a); }
TESSERA_INLINE I round(F a) { return (I)vcvtnq_s32_f32((float32x4_t)a); }
TESSERA_INLINE F load_f16(const void* at) {
  return (F)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(static_cast<const std::uint16_t*>(at))));
}
TESSERA_INLINE void load_f16_pairs(const void* at, F& even, F& odd) {
  const uint32x4_t pairs = vreinterpretq_u32_u16(vld1q_u16(static_cast<const std::uint16_t*>(at)));
  even = (F)vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(pairs)));
  odd = (F)vcvt_f32_f16(vreinterpret_f16_u16(vshrn_n_u32(pairs, 16)));
}
TESSERA_INLINE F unmixed(F a) { return a; }
TESSERA_INLINE I load_i16(const void* at) { return (I)vmovl_s16(vld1_s16(static_cast<const std::int16_t*>(at))); }
TESSERA_INLINE void store_i8(void* to, I a) {
  const int16x4_t words = vmovn_s32((int32x4_t)a);
  const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
  vst1_lane_s32(static_cast<std::int32_t*>(to), vreinterpret_s32_s8(bytes), 0);
}
TESSERA_INLINE void store_u16(void* to, I a) {
  vst1_u16(static_cast<std::uint16_t*>(to), vmovn_u32((uint32x4_t)a));
}
TESSERA_INLINE void store_past_caches(float* to, F a) { vst1q_f32(to, (float32x4_t)a); }
TESSERA_INLINE void fence_stores() {}
template <class Op>
TESSERA_INLINE I4 reduce4(I a, I b, I c, I d, Op op) {
  const auto pairs = [&](I x, I y) TESSERA_LAMBDA {
    return op((I)vzip1q_s32((int32x4_t)x, (int32x4_t)y), (I)vzip2q_s32((int32x4_t)x, (int32x4_t)y));
  };
  const int64x2_t ab = (int64x2_t)pairs(a, b), cd = (int64x2_t)pairs(c, d);
  return op((I)vzip1q_s64(ab, cd), (I)vzip2q_s64(ab, cd));
}

using FpState = std::uint64_t;
inline constexpr FpState kFlush = FpState{1} << 24;
TESSERA_INLINE FpState fp_state() {
  FpState state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
TESSERA_INLINE void set_fp_state(FpState state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }

TESSERA_INLINE B add_fifth_bits(B low, const std::uint8_t* bits) {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
  const uint8x16_t spread = vcombine_u8(vdup_n_u8(bits[0]), vdup_n_u8(bits[1]));
  return low | (B)vandq_u8(vtstq_u8(spread, bit), vdupq_n_u8(16));
}

TESSERA_INLINE I pair_products(B w, I x) {
  const auto a = (int8x16_t)w, b = (int8x16_t)x;
  return (I)vpaddq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vmull_high_s8(a, b));
}
TESSERA_INLINE I add_words(I a, I b) { return (I)vaddq_s16((int16x8_t)a, (int16x8_t)b); }
TESSERA_INLINE I dot2(I sum, I w, I x) {
  const auto a = (int16x8_t)w, b = (int16x8_t)x;
  return sum + (I)vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
}
TESSERA_INLINE void widen_i8(const void* from, void* to) {
  vst1q_s16(static_cast<std::int16_t*>(to), vmovl_s8(vld1_s8(static_cast<const std::int8_t*>(from))));
}

template <unsigned kBits>
TESSERA_INLINE I dot4(I sum, B w, I x) {
  int8x16_t a = vreinterpretq_s8_u8((uint8x16_t)w);
  if constexpr (kBits == 8) a = veorq_s8(a, vdupq_n_s8(-128));
  const int8x16_t b = (int8x16_t)x;
#ifdef __ARM_FEATURE_DOTPROD
  return (I)vdotq_s32((int32x4_t)sum, a, b);
#else
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
  const int32x4_t high = vpaddlq_s16(vmull_high_s8(a, b));
  return sum + (I)vpaddq_s32(low, high);
#endif
}

}  // namespace tessera::cpu::TESSERA_ISA::native
