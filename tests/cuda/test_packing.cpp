// Weights in the planes of a device: nothing is lost, nothing is added, and kernels read back what the format decodes.
#include <emulator/launch.hpp>

#include <limits>
#include <map>

#include "catch.hpp"
#include "cuda/kernels/products/unpack.hpp"
#include "formats/formats.hpp"
#include "weights.hpp"

namespace test_packing {

using namespace tessera;        // NOLINT: a test
using namespace tessera::cuda;  // NOLINT
using namespace tessera::test;  // NOLINT

namespace {

DType any_type() { return GENERATE(from_range(device_types().begin(), device_types().end())); }

std::string kernel(std::string_view what, DeviceForm form) { return std::string(what).append(form_name(form)); }

// Every row of the matrix, by unpack_rows.
std::vector<float> unpacked(const Weights& w) {
  std::vector<std::uint32_t> indices(w.outputs);
  for (std::uint32_t i = 0; i < w.outputs; ++i) indices[i] = i;
  std::vector<float> out(std::size_t{w.outputs} * w.inputs, std::numeric_limits<float>::quiet_NaN());
  emulator::launch(kernel("unpack_rows_", w.matrix.form).c_str(), {w.outputs}, kUnpackThreads, 0,
                   UnpackRowsArgs{w.matrix, indices.data(), out.data(), 1.0f, w.inputs, UnpackStore::set});
  return out;
}

void check_unpacked(const Weights& w) {
  const std::vector<float> out = unpacked(w);
  std::size_t wrong = 0;
  for (std::uint32_t o = 0; o < w.outputs; ++o) {
    const std::vector<float> row = w.row(o);
    for (std::uint32_t k = 0; k < w.inputs; ++k) wrong += !(out[std::size_t{o} * w.inputs + k] == row[k]);
  }
  CHECK(wrong == 0);
}

void put_half(std::vector<std::byte>& rows, std::size_t at, float value) {
  const std::uint16_t bits = f32_to_f16(value);
  std::memcpy(rows.data() + at, &bits, 2);
}

}  // namespace

TEST_CASE("a block in, its numbers out: Q8_0") {
  std::vector<std::byte> block(34);  // an f16 scale, then 32 integers
  put_half(block, 0, 0.5f);
  for (int i = 0; i < 32; ++i) block[2 + static_cast<std::size_t>(i)] = static_cast<std::byte>(i - 16);
  const std::vector<float> out = unpacked(Weights(DType::q8_0, 1, 32, block));
  for (int i = 0; i < 32; ++i) CHECK(out[static_cast<std::size_t>(i)] == 0.5f * static_cast<float>(i - 16));
}

TEST_CASE("packed weights take the file's bytes and at most 3 % more") {
  for (const DType type : device_types()) {
    CAPTURE(to_string(type));
    const DeviceForm form = cuda::device_form_of(type);
    const formats::Block block = *formats::block_of(type);
    for (const auto& [outputs, inputs] : {std::pair{4096u, 4096u},
                                          {14336u, 4096u},
                                          {4096u, 14336u},
                                          {1024u, 2048u},
                                          {128256u, 4096u},
                                          {1536u, 1536u}}) {
      const double file =
          static_cast<double>(outputs) * inputs / static_cast<double>(block.values) * static_cast<double>(block.bytes);
      const auto packed = static_cast<double>(packed_bytes(form, outputs, inputs));
      CHECK(packed >= file);
      CHECK(packed <= file * 1.03);
    }
  }
}

TEST_CASE("planes are apart, and what a lane loads is at a multiple of 16") {
  for (const DType type : device_types()) {
    CAPTURE(to_string(type));
    const DeviceForm form = cuda::device_form_of(type);
    const std::uint32_t least = static_cast<std::uint32_t>(formats::block_of(type)->values);
    for (const std::uint32_t inputs : {least, 3 * least, 64 * least}) {
      for (const std::uint32_t outputs : {1u, 3u, 300u}) {
        const DeviceMatrix m = device_matrix(form, outputs, inputs);
        std::uint64_t end = 0;
        for (std::size_t p = 0; p < kPlanes; ++p) {
          CHECK(m.offset[p] % kPlaneAlignment == 0);
          CHECK(m.offset[p] >= end);
          end = m.offset[p] + std::uint64_t{m.stride[p]} * outputs;
        }
        CHECK(end <= packed_bytes(form, outputs, inputs));
        CHECK(m.stride[0] % kUnitBytes == 0);
      }
    }
  }
}

TEST_CASE("packing is a bijection: every integer and every scale of the file's blocks is there") {
  const DType type = any_type();
  CAPTURE(to_string(type));
  const auto least = static_cast<std::uint32_t>(formats::block_of(type)->values);
  for (const std::uint32_t blocks : {1u, 3u, 8u}) {
    const std::uint32_t outputs = 17;
    const Weights w(type, outputs, blocks * least, any_blocks(type, outputs * blocks, blocks), GENERATE(1u, 5u, 100u));
    formats::visit(type, [&]<class F>(std::type_identity<F>) {
      std::size_t wrong = 0;
      for (std::uint32_t b = 0; b < outputs * blocks; ++b) {
        const std::byte* const block = w.file.data() + b * F::block_bytes;
        const std::uint32_t output = b / blocks, k0 = b % blocks * least;
        if constexpr (formats::keeps_blocks(F::packed_form)) {
          wrong += 1;
        } else if constexpr (F::block_values == 1) {
          wrong += std::memcmp(w.matrix.row(Plane::quants, output) + k0 * F::block_bytes, block, F::block_bytes) != 0;
        } else {
          std::conditional_t<F::block_values == 32, formats::Block32, formats::Block256> parts;
          F::unpack(block, parts);
          for (std::uint32_t k = 0; k < F::block_values; ++k)
            wrong += packed_quant(w.matrix, output, k0 + k) != parts.q[k];
          if constexpr (F::block_values == 32) {
            const std::size_t at = k0 / 32 * (form_parts(device_form(F::packed_form)).has_min ? 2 : 1);
            wrong += plane_value<std::uint16_t>(w.matrix, Plane::scales, output, at) != parts.d;
            if (form_parts(device_form(F::packed_form)).has_min) {
              wrong += plane_value<std::uint16_t>(w.matrix, Plane::scales, output, at + 1) != parts.m;
            }
          } else if constexpr (device_form(F::packed_form) == DeviceForm::block256_6) {
            wrong += plane_value<std::uint16_t>(w.matrix, Plane::supers, output, k0 / 256) != parts.d;
            for (std::uint32_t j = 0; j < 16; ++j) {
              wrong +=
                  (plane_value<std::uint8_t>(w.matrix, Plane::scales, output, k0 / 16 + j) ^ 128) != parts.scales[j];
            }
          } else {
            formats::detail::MinScales scales;
            scales.load(block);
            wrong += plane_value<std::uint16_t>(w.matrix, Plane::supers, output, k0 / 256 * 2) != parts.d;
            wrong += plane_value<std::uint16_t>(w.matrix, Plane::supers, output, k0 / 256 * 2 + 1) != parts.dmin;
            for (std::uint32_t j = 0; j < 8; ++j) {
              wrong += plane_value<std::uint8_t>(w.matrix, Plane::scales, output, (k0 / 32 + j) * 2) != scales.scale[j];
              wrong +=
                  plane_value<std::uint8_t>(w.matrix, Plane::scales, output, (k0 / 32 + j) * 2 + 1) != scales.min[j];
            }
          }
        }
      }
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("rows that end within a unit are filled up with zeros") {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    const auto bytes = static_cast<std::uint32_t>(formats::block_of(type)->bytes);
    for (const std::uint32_t inputs : {1u, 3u, 5u, 9u, 17u}) {
      const Weights w(type, 3, inputs, any_blocks(type, 3 * inputs, inputs), 2);
      for (std::uint32_t o = 0; o < 3; ++o) {
        for (std::uint32_t i = inputs * bytes; i < w.matrix.stride[0]; ++i) {
          REQUIRE(w.matrix.row(Plane::quants, o)[i] == std::byte{0});
        }
      }
    }
  }
}

TEST_CASE("rows read back are what the format decodes") {
  const DType type = any_type();
  CAPTURE(to_string(type));
  const auto least = static_cast<std::uint32_t>(formats::block_of(type)->values);
  for (const std::uint32_t blocks : {1u, 2u, 5u, 33u}) {
    CAPTURE(blocks);
    check_unpacked(Weights(type, 9, blocks * least, any_blocks(type, 9 * blocks, blocks)));
  }
}

TEST_CASE("every integer under every scale is what the format decodes") {
  // A row a scale; its blocks have each integer many times.
  const DType type = any_type();
  if (formats::block_of(type)->values == 1) return;  // plain numbers
  CAPTURE(to_string(type));
  const formats::Block block = *formats::block_of(type);
  const float kScales[] = {65504.0f, -65504.0f,   0x1p-24f,      -0x1p-24f, 0.0f,
                           1.0f,     0x1.ffcp-3f, -0x1.554p-14f, 0x1.998p4f};
  std::vector<std::byte> rows;
  std::mt19937 random(3);
  const std::uint32_t blocks = block.values == 32 ? 256 : 64;
  for (const float d : kScales) {
    for (std::uint32_t b = 0; b < blocks; ++b) {
      const std::size_t at = rows.size();
      for (std::size_t i = 0; i < block.bytes; ++i) rows.push_back(static_cast<std::byte>(random() & 0xff));
      if (type == DType::q6_k) {
        for (std::size_t j = 0; j < 16; ++j) rows[at + 192 + j] = static_cast<std::byte>(b * 16 + j);
        put_half(rows, at + 208, d);
      } else {
        put_half(rows, at, d);
        if (form_parts(cuda::device_form_of(type)).has_min) put_half(rows, at + 2, kScales[b % std::size(kScales)]);
        if (block.values == 256) {  // 6-bit scales and minima
          formats::detail::MinScales scales;
          scales.load(rows.data() + at);
          for (std::uint32_t j = 0; j < 8; ++j) {
            scales.scale[j] = static_cast<std::uint8_t>((b + j * 9) % 64);
            scales.min[j] = static_cast<std::uint8_t>((b * 5 + j * 23) % 64);
          }
          scales.store(rows.data() + at);
        }
      }
    }
  }
  const Weights w(type, static_cast<std::uint32_t>(std::size(kScales)),
                  blocks * static_cast<std::uint32_t>(block.values), rows);
  std::map<unsigned, int> seen;
  for (std::uint32_t k = 0; k < w.inputs; ++k) ++seen[packed_quant(w.matrix, 0, k)];
  CHECK(seen.size() == std::size_t{1} << form_parts(w.matrix.form).bits);
  check_unpacked(w);
}

TEST_CASE("rows are gathered by index, added, or left alone") {
  const DType type = any_type();
  CAPTURE(to_string(type));
  const std::uint32_t inputs = formats::block_of(type)->values == 1 ? 37 : 512, stride = inputs + 3;
  const Weights w(type, 6, inputs, encoded(type, 6, inputs, 1));
  const std::vector<std::uint32_t> indices{5, kNoRow, 0, 5, 3};
  const float kept = 7.25f;
  for (const UnpackStore store : {UnpackStore::set, UnpackStore::add}) {
    std::vector<float> out(indices.size() * stride, kept);
    emulator::launch(kernel("unpack_rows_", w.matrix.form).c_str(), {5}, kUnpackThreads, 0,
                     UnpackRowsArgs{w.matrix, indices.data(), out.data(), 1.0f, stride, store});
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::vector<float> row = w.row(indices[i] == kNoRow ? 0 : indices[i]);
      std::size_t wrong = 0;
      for (std::uint32_t k = 0; k < stride; ++k) {
        const bool touched = k < inputs && indices[i] != kNoRow;
        const float expected = !touched ? kept : store == UnpackStore::add ? kept + row[k] : row[k];
        wrong += !(out[i * stride + k] == expected);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("stretches of outputs as f16, saturated") {
  const DType type = any_type();
  if (formats::block_of(type)->values == 1) return;  // plain numbers
  CAPTURE(to_string(type));
  const auto values = static_cast<std::uint32_t>(formats::block_of(type)->values);
  for (const std::uint32_t inputs : {values, 3 * values, 2304u}) {
    const Weights w(type, 11, inputs, any_blocks(type, 11 * inputs / values, inputs));
    const std::uint32_t first = 4, count = 6;
    AlignedBytes out(count * inputs * 2);
    emulator::launch(kernel("unpack_half_", w.matrix.form).c_str(), {count, (inputs + kHalfTile - 1) / kHalfTile},
                     kUnpackThreads, 0, UnpackHalfArgs{w.matrix, reinterpret_cast<std::uint16_t*>(out.data()), first});
    std::size_t wrong = 0, saturated = 0;
    for (std::uint32_t o = 0; o < count; ++o) {
      const std::vector<float> row = w.row(first + o);
      for (std::uint32_t k = 0; k < inputs; ++k) {
        std::uint16_t half;
        std::memcpy(&half, out.data() + (std::size_t{o} * inputs + k) * 2, 2);
        const float limited = std::min(std::max(row[k], -65504.0f), 65504.0f);
        saturated += limited != row[k];
        wrong += !(f16_to_f32(half) == f16_to_f32(f32_to_f16(limited)));
      }
    }
    CHECK(wrong == 0);
    CHECK((inputs != 2304u || saturated > 0));
  }
}

}  // namespace test_packing
