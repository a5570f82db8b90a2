// The numbers that KV types hold, from docs/reference/numerics.md: records as numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/kv/kv_layout.hpp>

namespace tessera::test {

inline constexpr DType kKvTypes[] = {DType::f32, DType::f16, DType::bf16, DType::int8, DType::fp8, DType::int4, DType::k8v4};
// Of each size of element one, and runs; keys and values alike and apart: for tests that take long.
inline constexpr DType kFewKvTypes[] = {DType::f32, DType::f16, DType::int8, DType::k8v4};

// As what the type holds keys, or values.
inline DType held_as(DType type, kv::KeyOrValue part) {
  if (type != DType::k8v4) return type;
  return part == kv::KeyOrValue::key ? DType::int8 : DType::int4;
}
inline bool has_scale(DType type) { return type == DType::int8 || type == DType::fp8 || type == DType::int4; }
inline bool is_held_rotated(DType type) { return type == DType::int8 || type == DType::int4; }

// A number of E4M3, over 256.
inline float e4m3_over_256(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -17) : std::ldexp(static_cast<float>(8 + fraction), exponent - 18);
  return (bits & 0x80) != 0 ? -size : size;
}

// A key or a value of one token and head: what is held, and the scale by which it is multiplied later, or 1.
struct HeldRow {
  std::vector<float> values;
  float scale = 1.0f;
};

// Of a record of a type that has a scale.
inline HeldRow held_row(DType type, std::span<const std::byte> record, std::size_t dim) {
  HeldRow row;
  row.values.resize(dim);
  for (std::size_t d = 0; d < dim; ++d) {
    const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(record[i]); };
    if (type == DType::int8) row.values[d] = static_cast<std::int8_t>(at(d));
    if (type == DType::fp8) row.values[d] = e4m3_over_256(at(d));
    if (type == DType::int4) {
      const std::size_t run = d / 32 * 18, i = d % 32;
      const int four = at(run + i % 16) >> (i / 16 * 4) & 15, n = four < 8 ? four : four - 16;
      row.values[d] = static_cast<float>(n * static_cast<std::int8_t>(at(run + 16 + i / 16)));
    }
  }
  std::memcpy(&row.scale, record.data() + record.size() - sizeof(float), sizeof(float));
  return row;
}

}  // namespace tessera::test
