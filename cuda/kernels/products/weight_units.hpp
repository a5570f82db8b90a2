// One unit of an output's weights (the weights of 16 bytes, packed_layout.hpp) in a lane's registers, and its values as f32.
//
// The integers q of a unit become weights scale * (q - offset) without an instruction that converts integers to floats. q is put into the
// mantissa of the float 2^7 (for weights of 8 bits: of 2^15), at the bits that count 1, 2, 4, ... The result is the float 2^7 + q. One
// fused multiply-add then multiplies by the scale and subtracts scale * (2^7 + offset). This is exact: a scale has at most 18 significant
// bits and an integer at most 8, so both scale * (2^7 + offset) and scale * (q - offset) are floats. Exception: scales of opened blocks
// have up to 24 bits. There 2^15 and the offset are subtracted first, which is exact, and the product with the scale is rounded once, as
// decode() does.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/kernels/device.hpp"
#include "cuda/weights/packed_layout.hpp"

namespace tessera::cuda {

struct UnitBits {
  Words4 quants;
  std::uint32_t high[2];
  std::uint32_t scales, supers;  // the unit's data in the planes of scales and supers; with 8 bits, those of its block; opened: scale, addend
};

// How some integers q of a unit become weights: weight = scale * (q - offset) + addend. To compute it, one fused multiply-add makes scale *
// (base + q) + shift, where base is 2^7 or 2^15 (see above) and shift is -scale * (base + offset). Then the addend is added.
struct UnitScale {
  float scale, shift, addend;
};

template <class T>
TESSERA_DEVICE std::uint32_t load_as(const std::byte* plane, std::uint32_t index) {
  return reinterpret_cast<const T*>(plane)[index];
}

template <DeviceForm form>
TESSERA_DEVICE UnitBits load_unit(const DeviceMatrix& matrix, std::uint32_t output, std::uint32_t unit) {
  constexpr FormParts kParts = form_parts(form);
  UnitBits bits{};
  bits.quants = load_streaming(matrix.row(Plane::quants, output) + std::size_t{unit} * kUnitBytes);
  if constexpr (kParts.bits == 5) {
    bits.high[0] = load_as<std::uint32_t>(matrix.row(Plane::high, output), unit);
  } else if constexpr (kParts.bits == 6) {
    bits.high[0] = load_as<std::uint32_t>(matrix.row(Plane::high, output), 2 * unit);
    bits.high[1] = load_as<std::uint32_t>(matrix.row(Plane::high, output), 2 * unit + 1);
  }
  if constexpr (kParts.block == 16) {
    constexpr std::uint32_t kWords = kParts.has_min ? 2 : 1;
    bits.scales = load_as<std::uint32_t>(matrix.row(Plane::scales, output), kWords * unit);
    if constexpr (kParts.has_min) bits.supers = load_as<std::uint32_t>(matrix.row(Plane::scales, output), 2 * unit + 1);
  } else if constexpr (kParts.block == 32) {
    using Scales = std::conditional_t<kParts.has_min, std::uint32_t, std::uint16_t>;
    bits.scales = load_as<Scales>(matrix.row(Plane::scales, output), unit * kParts.unit / 32);
  } else if constexpr (kParts.block == 256) {
    using Supers = std::conditional_t<kParts.has_min, std::uint32_t, std::uint16_t>;
    bits.scales = load_as<std::uint16_t>(matrix.row(Plane::scales, output), unit);
    bits.supers = load_as<Supers>(matrix.row(Plane::supers, output), unit / 8);
  }
  return bits;
}

TESSERA_DEVICE float low_half(std::uint32_t bits) { return half_to_float(static_cast<std::uint16_t>(bits)); }
TESSERA_DEVICE float high_half(std::uint32_t bits) { return half_to_float(static_cast<std::uint16_t>(bits >> 16)); }

// small_byte() returns 2^7 + byte i as a float; byte i must be at most 63. any_byte() returns 2^15 + byte i.
TESSERA_DEVICE float small_byte(std::uint32_t bytes, unsigned i) {
  return std::bit_cast<float>(pick_bytes(bytes, 0x43000000u, 0x7044u | i << 8));
}
TESSERA_DEVICE float any_byte(std::uint32_t bytes, unsigned i) {
  return std::bit_cast<float>(pick_bytes(bytes, 0x47000000u, 0x7404u | i << 4));
}
inline constexpr float kSmallBase = 0x1p7f, kAnyBase = 0x1p15f;

// Returns the scale of the unit's values from 4 * group on. Not for plain numbers, which have no scale.
template <DeviceForm form>
TESSERA_DEVICE UnitScale unit_scale(const UnitBits& bits, unsigned group) {
  constexpr FormParts kParts = form_parts(form);
  UnitScale result{};
  if constexpr (kParts.block == 16) {  // opened blocks need no shift: four_values() subtracts the offset first
    return {std::bit_cast<float>(bits.scales), 0.0f, kParts.has_min ? std::bit_cast<float>(bits.supers) : 0.0f};
  }
  if constexpr (kParts.block == 32) {
    result.scale = low_half(bits.scales);
    if constexpr (kParts.has_min) result.addend = high_half(bits.scales);
  } else if constexpr (kParts.bits == 6) {
    const float d = low_half(bits.supers);
    result.scale = fma(d, any_byte(bits.scales, group / 4), d * -(kAnyBase + 128.0f));
  } else if constexpr (kParts.block == 256) {
    const float d = low_half(bits.supers), dmin = high_half(bits.supers);
    result.scale = fma(d, small_byte(bits.scales, 0), d * -kSmallBase);
    result.addend = fma(-dmin, small_byte(bits.scales, 1), dmin * kSmallBase);
  }
  constexpr float kBase = kParts.bits == 8 ? kAnyBase : kSmallBase;
  result.shift = result.scale * -(kBase + static_cast<float>(kParts.offset));
  return result;
}

TESSERA_DEVICE std::uint32_t word_of(const Words4& words, unsigned i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

// Returns integers 4 * group to 4 * group + 3 of the unit, a byte each.
template <DeviceForm form>
TESSERA_DEVICE std::uint32_t four_quants(const UnitBits& bits, unsigned group) {
  constexpr FormParts kParts = form_parts(form);
  if constexpr (kParts.bits == 8) {
    return word_of(bits.quants, group);
  } else {
    const std::uint32_t word = word_of(bits.quants, group / 2);
    const std::uint32_t low = (group % 2 == 0 ? word : word >> 4) & 0x0f0f0f0fu;
    if constexpr (kParts.bits == 5) return low | (bits.high[0] >> group & 0x01010101u) << 4;
    if constexpr (kParts.bits == 6) {
      const std::uint32_t high = group < 4 ? bits.high[0] : bits.high[1];
      return low | (high >> group % 4 * 2 & 0x03030303u) << 4;
    }
    return low;
  }
}

// Computes scale * (q - offset) of these four values, exactly. Plain numbers are returned as they are.
template <DeviceForm form>
TESSERA_DEVICE void four_values(const UnitBits& bits, const UnitScale& scale, unsigned group, float (&values)[4]) {
  constexpr FormParts kParts = form_parts(form);
  if constexpr (form == DeviceForm::f32) {
    for (unsigned i = 0; i < 4; ++i) values[i] = std::bit_cast<float>(word_of(bits.quants, i));
  } else if constexpr (form == DeviceForm::f16) {
    for (unsigned i = 0; i < 4; i += 2) {
      const std::uint32_t word = word_of(bits.quants, 2 * group + i / 2);
      values[i] = low_half(word);
      values[i + 1] = high_half(word);
    }
  } else if constexpr (form == DeviceForm::bf16) {
    for (unsigned i = 0; i < 4; i += 2) {
      const std::uint32_t word = word_of(bits.quants, 2 * group + i / 2);
      values[i] = std::bit_cast<float>(word << 16);
      values[i + 1] = std::bit_cast<float>(word & 0xffff0000u);
    }
  } else {
    const std::uint32_t bytes = four_quants<form>(bits, group);
    for (unsigned i = 0; i < 4; ++i) {
      if constexpr (kParts.block == 16) values[i] = scale.scale * (any_byte(bytes, i) - (kAnyBase + 128.0f));
      else values[i] = fma(scale.scale, kParts.bits == 8 ? any_byte(bytes, i) : small_byte(bytes, i), scale.shift);
    }
  }
}

// Computes these four values as the format's decode() returns them.
template <DeviceForm form>
TESSERA_DEVICE void four_decoded(const UnitBits& bits, unsigned group, float (&values)[4]) {
  const UnitScale scale = unit_scale<form>(bits, group);
  four_values<form>(bits, scale, group, values);
  if constexpr (form_parts(form).has_min) {
    for (unsigned i = 0; i < 4; ++i) values[i] = values[i] + scale.addend;
  }
}

}  // namespace tessera::cuda
