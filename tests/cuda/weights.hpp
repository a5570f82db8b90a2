// Weights for the tests of kernels: rows in a file's format, packed chunk by chunk as a loader does it, and read back
// by a plain reader of packed_layout.hpp.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/formats/rows.hpp>

#include "cuda/weights/packed_layout.hpp"
#include "cuda/weights/packing.hpp"
#include "formats/formats.hpp"

namespace tessera::test {

using cuda::DeviceMatrix;
using cuda::DeviceForm;
using cuda::Plane;

// The formats that a device holds with the integers and scales of the file.
inline const std::vector<DType>& device_types() {
  static const std::vector<DType> types = [] {
    std::vector<DType> list;
    for (const DType type : formats::all()) {
      if (!formats::keeps_blocks(formats::packed_form_of(type))) list.push_back(type);
    }
    return list;
  }();
  return types;
}

// The formats whose blocks are opened, of those that can be written.
inline const std::vector<DType>& opened_types() {
  static const std::vector<DType> types = [] {
    std::vector<DType> list;
    formats::for_each(formats::All{}, [&]<class F>(std::type_identity<F>) {
      if (formats::keeps_blocks(F::packed_form) && formats::has_encoder<F>) list.push_back(F::dtype);
    });
    return list;
  }();
  return types;
}

// What kernels of a form are called after it.
inline std::string_view form_name(DeviceForm form) {
  constexpr std::string_view kNames[] = {"f32",           "f16",        "bf16",          "block32_4",
                                         "block32_4_min", "block32_5",  "block32_5_min", "block32_8",
                                         "block256_4",    "block256_5", "block256_6",    "open",  "open_min"};
  return kNames[static_cast<std::size_t>(form)];
}

// Planes at a multiple of 16, as a device has them.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t bytes, std::byte fill = std::byte{0xff}) : units_(bytes / 16 + 1) {
    std::memset(units_.data(), std::to_integer<int>(fill), units_.size() * 16);
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(units_.data()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(units_.data()); }

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  std::vector<Unit> units_;
};

// A matrix in the file's format and packed, in chunks of `chunk` rows.
struct Weights {
  DType type;
  std::uint32_t outputs, inputs;
  std::vector<std::byte> file;  // rows of blocks
  AlignedBytes packed;
  DeviceMatrix matrix;

  Weights(DType of, std::uint32_t n_outputs, std::uint32_t n_inputs, std::vector<std::byte> rows,
          std::uint32_t chunk = 7)
      : type(of),
        outputs(n_outputs),
        inputs(n_inputs),
        file(std::move(rows)),
        packed(cuda::packed_bytes(cuda::device_form_of(of), n_outputs, n_inputs)),
        matrix(cuda::device_matrix(cuda::device_form_of(of), n_outputs, n_inputs, packed.data())) {
    AlignedBytes staging(cuda::staging_bytes(matrix.form, inputs, chunk));
    for (std::uint32_t first = 0; first < outputs; first += chunk) {
      const std::uint32_t count = std::min(chunk, outputs - first);
      cuda::pack_rows(type, matrix, file.data() + first * row_bytes(), count, staging.data());
      for (const cuda::Stretch& s : cuda::stretches(matrix, first, count)) {
        std::memcpy(packed.data() + s.to, staging.data() + s.from, s.bytes);
      }
    }
  }
  Weights(const Weights&) = delete;

  std::size_t row_bytes() const { return inputs / formats::block_of(type)->values * formats::block_of(type)->bytes; }

  // As the format decodes it  [inputs].
  std::vector<float> row(std::uint32_t output) const {
    std::vector<float> values(inputs);
    REQUIRE(formats::decode_row(type, std::span(file).subspan(output * row_bytes(), row_bytes()), values));
    return values;
  }
};

inline std::vector<std::byte> encoded(DType type, std::uint32_t outputs, std::uint32_t inputs, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.02f, 0.5f);
  std::vector<float> values(std::size_t{outputs} * inputs);
  for (float& v : values) v = normal(random);
  const formats::Block block = *formats::block_of(type);
  std::vector<std::byte> rows(values.size() / block.values * block.bytes);
  REQUIRE(formats::encode_row(type, values, rows));
  return rows;
}

// Any bytes, but scales that are f16 are finite: with d at 0, or before the end of Q6_K's block.
inline std::vector<std::byte> any_blocks(DType type, std::size_t blocks, std::uint32_t seed) {
  std::mt19937 random(seed);
  const formats::Block block = *formats::block_of(type);
  std::vector<std::byte> bytes(blocks * block.bytes);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xff);
  const DeviceForm form = cuda::device_form_of(type);
  const auto finite = [&](std::size_t at) {
    if ((bytes[at + 1] & std::byte{0x7c}) == std::byte{0x7c}) bytes[at + 1] ^= std::byte{0x40};
  };
  for (std::size_t b = 0; b < bytes.size(); b += block.bytes) {
    if (type == DType::f32) {
      if ((bytes[b + 3] & std::byte{0x7f}) == std::byte{0x7f}) bytes[b + 3] ^= std::byte{0x40};
    } else if (type == DType::bf16) {
      if ((bytes[b + 1] & std::byte{0x7f}) == std::byte{0x7f}) bytes[b + 1] ^= std::byte{0x40};
    } else {
      finite(b + (form == DeviceForm::block256_6 ? 208 : 0));
      if (cuda::form_parts(form).has_min) finite(b + 2);
    }
  }
  return bytes;
}

// ---- The plain reader ----

struct UnpackedScale {
  float scale = 1.0f, addend = 0.0f;  // value = scale * (q - offset) + addend
};

template <class T>
T plane_value(const DeviceMatrix& m, Plane plane, std::uint32_t output, std::size_t index) {
  T value;
  std::memcpy(&value, m.row(plane, output) + index * sizeof(T), sizeof(T));
  return value;
}

inline unsigned packed_quant(const DeviceMatrix& m, std::uint32_t output, std::uint32_t k) {
  const unsigned bits = cuda::form_parts(m.form).bits;
  if (bits == 8) return plane_value<std::uint8_t>(m, Plane::quants, output, k);
  const std::uint32_t in_unit = k % 32, j = in_unit / 8, i = in_unit % 4;
  const unsigned both = plane_value<std::uint8_t>(m, Plane::quants, output, k / 32 * 16 + j * 4 + i);
  unsigned q = in_unit % 8 < 4 ? both & 15u : both >> 4;
  if (bits == 5) q |= (plane_value<std::uint32_t>(m, Plane::high, output, k / 32) >> (8 * i + in_unit / 4) & 1u) << 4;
  if (bits == 6)
    q |= (plane_value<std::uint32_t>(m, Plane::high, output, k / 16) >> (8 * i + k % 16 / 4 * 2) & 3u) << 4;
  return q;
}

inline UnpackedScale packed_scale(const DeviceMatrix& m, std::uint32_t output, std::uint32_t k) {
  const cuda::FormParts parts = cuda::form_parts(m.form);
  const auto half = [&](Plane plane, std::size_t index) {
    return f16_to_f32(plane_value<std::uint16_t>(m, plane, output, index));
  };
  if (parts.block == 16) {
    const std::size_t words = parts.has_min ? 2 : 1;
    const float scale = plane_value<float>(m, Plane::scales, output, k / 16 * words);
    return {scale, parts.has_min ? plane_value<float>(m, Plane::scales, output, k / 16 * 2 + 1) : 0.0f};
  }
  if (parts.block == 32) {
    if (!parts.has_min) return {half(Plane::scales, k / 32), 0.0f};
    return {half(Plane::scales, k / 32 * 2), half(Plane::scales, k / 32 * 2 + 1)};
  }
  if (parts.bits == 6) {
    const int scale = plane_value<std::uint8_t>(m, Plane::scales, output, k / 16) - 128;
    return {half(Plane::supers, k / 256) * static_cast<float>(scale), 0.0f};
  }
  const float scale = plane_value<std::uint8_t>(m, Plane::scales, output, k / 32 * 2);
  const float min = plane_value<std::uint8_t>(m, Plane::scales, output, k / 32 * 2 + 1);
  return {half(Plane::supers, k / 256 * 2) * scale, -(half(Plane::supers, k / 256 * 2 + 1) * min)};
}

// scale * (q - offset), or a plain number: what is multiplied with x.
inline float packed_factor(const DeviceMatrix& m, std::uint32_t output, std::uint32_t k) {
  const cuda::FormParts parts = cuda::form_parts(m.form);
  if (m.form == DeviceForm::f32) return plane_value<float>(m, Plane::quants, output, k);
  if (m.form == DeviceForm::f16) return f16_to_f32(plane_value<std::uint16_t>(m, Plane::quants, output, k));
  if (m.form == DeviceForm::bf16) return bf16_to_f32(plane_value<std::uint16_t>(m, Plane::quants, output, k));
  const int q = static_cast<int>(packed_quant(m, output, k)) - static_cast<int>(parts.offset);
  return packed_scale(m, output, k).scale * static_cast<float>(q);
}

}  // namespace tessera::test
