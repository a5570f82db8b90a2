// The layout of a weight matrix [outputs][inputs] in a device's memory: up to four planes, each with one kind of data (integers, high bits,
// scales, scales of superblocks). A plane starts at a multiple of 256 bytes and is row-major by output, so consecutive outputs are one
// piece of each plane. A row of the quants plane has the integers q of the weights. It consists of units of 16 bytes, which a lane loads at
// once:
//
//   f32          4 values
//   f16, bf16    8 values
//   8 bits       16 values, four in a word of 32 bits: q[4 g + i] is byte i of word g
//   4, 5, 6 bits 32 values, the low four bits; in word j the low half of byte i is from q[8 j + i], the high half
//                from q[8 j + 4 + i]. So a shift and a mask of a word give the bytes of four consecutive values.
//
// In the other planes, 32 values have these data, without gaps:
//
//   high    5 bits: u32, the fifth bit of q[4 g + i] at bit 8 i + g
//           6 bits: two u32 for 16 values each, the high two bits of q[4 g + i] at bits 8 i + 2 g and the next
//   scales  block32     the block's scale d (f16); in formats with minima d and the minimum m
//           block256    4 and 5 bits: the scale and the minimum of a sub-block of 32, a byte each. (The file has them
//                       in 6 bits; to take those apart would cost every product instructions.)
//                       6 bits: the scales of two sub-blocks of 16, a byte each: scale + 128
//           open        for each 16 values the scale (f32); in formats with minima the scale and an addend (f32 each)
//   supers  block256    d and dmin (f16), the scales of 256 values' scales and minima; 6 bits: only d
//
// Most matrices take as many bytes as in the file. Exceptions: Q4_K takes 2.8 % more, Q5_K 2.3 % more, and formats whose blocks are opened
// take 10 bits a weight (Q2_K: 12), whatever their size in the file. A row of plain numbers (f32, f16, bf16) may end within a unit; the
// rest of the unit is zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/packed_form.hpp"

namespace tessera::cuda {

// The forms in which a device holds weights: the forms of formats::PackedForm that take blocks apart, and two forms (open, open_min) for
// blocks that are opened when they are packed. An opened block has an integer q of 8 bits for each weight, and a scale (f32) for each 16
// weights. With open_min it has an addend for each 16 weights too. A weight is scale * (q - 128), or scale * (q - 128) + addend.
enum class DeviceForm : std::uint8_t {
  f32, f16, bf16, block32_4, block32_4_min, block32_5, block32_5_min, block32_8, block256_4, block256_5, block256_6,
  open, open_min,
  count
};

[[nodiscard]] constexpr DeviceForm device_form(formats::PackedForm form) noexcept {
  if (form == formats::PackedForm::count) return DeviceForm::count;
  if (formats::keeps_blocks(form)) return form == formats::PackedForm::kept_q2_k ? DeviceForm::open_min : DeviceForm::open;
  return static_cast<DeviceForm>(form);
}
static_assert(device_form(formats::PackedForm::block256_6) == DeviceForm::block256_6, "the first forms are in the order of PackedForm");

enum class Plane : std::uint8_t { quants, high, scales, supers, count };
inline constexpr std::size_t kPlanes = static_cast<std::size_t>(Plane::count);

inline constexpr std::uint64_t kPlaneAlignment = 256;
inline constexpr std::uint32_t kUnitBytes = 16;

// The sizes of a packed form on a device. bits 0: not quantised.
struct FormParts {
  unsigned bits = 0;
  unsigned offset = 0;                                        // subtracted from each integer
  bool has_min = false;                                       // true: after scaling a minimum is added to the values
  std::uint32_t block = 1;                                    // how many values share one d
  std::uint32_t unit = 0;                                     // values in a unit: 16 bytes of the quants plane
  std::uint32_t unit_bytes[kPlanes] = {kUnitBytes, 0, 0, 0};  // bytes for a unit in each plane; in `supers`, for a block
};

[[nodiscard]] constexpr FormParts plain_parts(std::uint32_t value_bytes) noexcept {
  return {.unit = kUnitBytes / value_bytes};
}

[[nodiscard]] constexpr FormParts block32_parts(unsigned bits, bool has_min) noexcept {
  FormParts parts{.bits = bits, .offset = has_min ? 0u : 1u << (bits - 1), .has_min = has_min, .block = 32};
  parts.unit = bits == 8 ? 16 : 32;
  parts.unit_bytes[1] = bits == 5 ? 4 : 0;
  parts.unit_bytes[2] = has_min ? 4 : 2;
  return parts;
}

[[nodiscard]] constexpr FormParts block256_parts(unsigned bits) noexcept {
  FormParts parts{.bits = bits, .offset = bits == 6 ? 32u : 0u, .has_min = bits != 6, .block = 256, .unit = 32};
  parts.unit_bytes[1] = (bits - 4) * 4;
  parts.unit_bytes[2] = 2;
  parts.unit_bytes[3] = bits == 6 ? 2 : 4;
  return parts;
}

[[nodiscard]] constexpr FormParts open_parts(bool has_min) noexcept {
  FormParts parts{.bits = 8, .offset = 128, .has_min = has_min, .block = 16, .unit = 16};
  parts.unit_bytes[2] = has_min ? 8 : 4;
  return parts;
}

inline constexpr std::size_t kDeviceForms = static_cast<std::size_t>(DeviceForm::count);

[[nodiscard]] constexpr FormParts form_parts(DeviceForm form) noexcept {
  switch (form) {
    case DeviceForm::f32: return plain_parts(4);
    case DeviceForm::f16:
    case DeviceForm::bf16: return plain_parts(2);
    case DeviceForm::block32_4: return block32_parts(4, false);
    case DeviceForm::block32_4_min: return block32_parts(4, true);
    case DeviceForm::block32_5: return block32_parts(5, false);
    case DeviceForm::block32_5_min: return block32_parts(5, true);
    case DeviceForm::block32_8: return block32_parts(8, false);
    case DeviceForm::block256_4: return block256_parts(4);
    case DeviceForm::block256_5: return block256_parts(5);
    case DeviceForm::block256_6: return block256_parts(6);
    case DeviceForm::open: return open_parts(false);
    case DeviceForm::open_min: return open_parts(true);
    case DeviceForm::count: break;
  }
  return {};
}

[[nodiscard]] constexpr bool is_quantised(DeviceForm form) noexcept { return form_parts(form).bits != 0; }

// The planes of one matrix. Kernels get this struct by value; `data` is a device address.
struct DeviceMatrix {
  const std::byte* data = nullptr;
  std::uint64_t offset[kPlanes] = {};  // bytes from `data` to each plane
  std::uint32_t stride[kPlanes] = {};  // bytes from output to output
  std::uint32_t outputs = 0;
  std::uint32_t inputs = 0;
  DeviceForm form = DeviceForm::count;

  [[nodiscard]] constexpr std::uint32_t units() const noexcept {  // units of a row
    return stride[0] / kUnitBytes;
  }
  [[nodiscard]] constexpr const std::byte* row(Plane plane, std::uint32_t output) const noexcept {
    const auto p = static_cast<std::size_t>(plane);
    return data + offset[p] + std::uint64_t{output} * stride[p];
  }
};

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t multiple) noexcept {
  return (n + multiple - 1) / multiple * multiple;
}
// Rounds bytes up to kPlaneAlignment.
[[nodiscard]] constexpr std::uint64_t plane_aligned(std::uint64_t bytes) noexcept { return round_up(bytes, kPlaneAlignment); }

// Returns the bytes of one output's row in a plane. `inputs` must be a multiple of the form's block.
[[nodiscard]] constexpr std::uint64_t plane_stride(DeviceForm form, Plane plane, std::uint64_t inputs) noexcept {
  const FormParts parts = form_parts(form);
  const std::uint64_t bytes = parts.unit_bytes[static_cast<std::size_t>(plane)];
  if (plane == Plane::supers) return inputs / parts.block * bytes;
  if (plane == Plane::scales && parts.block == 32) return inputs / 32 * bytes;
  return (inputs + parts.unit - 1) / parts.unit * bytes;
}

// Returns whether DeviceMatrix's members are wide enough for the sizes and strides of the matrix.
[[nodiscard]] constexpr bool fits_device_matrix(std::uint64_t outputs, std::uint64_t inputs) noexcept {
  return outputs < (std::uint64_t{1} << 31) && inputs < (std::uint64_t{1} << 29);
}

[[nodiscard]] constexpr DeviceMatrix device_matrix(DeviceForm form, std::uint64_t outputs, std::uint64_t inputs,
                                                   const std::byte* data = nullptr) noexcept {
  DeviceMatrix matrix;
  matrix.data = data;
  matrix.outputs = static_cast<std::uint32_t>(outputs);
  matrix.inputs = static_cast<std::uint32_t>(inputs);
  matrix.form = form;
  std::uint64_t at = 0;
  for (std::size_t p = 0; p < kPlanes; ++p) {
    const std::uint64_t stride = plane_stride(form, static_cast<Plane>(p), inputs);
    matrix.offset[p] = at;
    matrix.stride[p] = static_cast<std::uint32_t>(stride);
    at += round_up(stride * outputs, kPlaneAlignment);
  }
  return matrix;
}

// Returns the bytes of all planes: a multiple of kPlaneAlignment, at which the matrix must start.
[[nodiscard]] constexpr std::uint64_t packed_bytes(DeviceForm form, std::uint64_t outputs,
                                                   std::uint64_t inputs) noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t p = 0; p < kPlanes; ++p) {
    bytes += round_up(plane_stride(form, static_cast<Plane>(p), inputs) * outputs, kPlaneAlignment);
  }
  return bytes;
}

}  // namespace tessera::cuda
