#include "files/quantised/fp4.hpp"

#include <algorithm>

#include "core/checked.hpp"
#include "core/error.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kMxValues = 32, kMxBytes = 17;
constexpr std::size_t kNvValues = 64, kNvBytes = 36, kNvScales = 4;

// Brings `2 * half` values of 4 bits from the file's order into the order of our blocks. In `from`, byte i has value 2 i in its low half
// and value 2 i + 1 in its high half. In `to`, byte i has value i in its low half and value i + half in its high half.
void reorder_nibbles(const std::byte* from, std::size_t half, std::byte* to) noexcept {
  const auto value = [&](std::size_t i) { return static_cast<unsigned>(from[i / 2]) >> i % 2 * 4 & 15u; };
  for (std::size_t i = 0; i < half; ++i) to[i] = static_cast<std::byte>(value(i) | value(i + half) << 4);
}

Status check_fp4(const Fp4Rows& rows, const char* name, std::size_t block, std::size_t a_scale) {
  if (rows.rows == 0 || rows.inputs == 0 || rows.inputs % block != 0) {
    return make_error(ErrorCode::unsupported, "{} weights of {} x {}: rows must be multiples of {}", name, rows.rows,
                      rows.inputs, block);
  }
  TESSERA_TRY_STATUS(check_bytes("the weights", rows.weights, size_product({rows.rows, rows.inputs / 2})));
  return check_bytes("the scales of the weights", rows.scales, size_product({rows.rows, rows.inputs / a_scale}));
}

// Checks that the rows of a range exist, and that `out` has the size of these rows.
Status check_fp4_range(const Fp4Rows& rows, const RowRange& range, DType form, std::span<const std::byte> out) {
  const auto last = range.count == 0 ? std::optional<std::uint64_t>(0) : checked_multiply(range.count - 1, range.step);
  const auto end = last ? checked_add(range.first, *last) : std::nullopt;
  if (range.count > 0 && (!end || *end >= rows.rows)) {
    return make_error(ErrorCode::invalid_argument, "cannot decode {} rows, {} apart, from {} on of {}", range.count,
                      range.step, range.first, rows.rows);
  }
  return check_rows({rows.rows, rows.inputs, rows.inputs}, 0, range.count, form, out);
}

}  // namespace

Status check_mxfp4(const Fp4Rows& rows) noexcept {
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(check_fp4(rows, "MXFP4", kMxValues, kMxValues));
    if (std::find(rows.scales.begin(), rows.scales.end(), std::byte{255}) == rows.scales.end()) return {};
    return make_error(ErrorCode::corrupt_file, "a scale of the weights is not a number (255)");
  });
}

Status check_nvfp4(const Fp4Rows& rows) noexcept {
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(check_fp4(rows, "NVFP4", kNvValues, kNvValues / kNvScales));
    if (std::all_of(rows.scales.begin(), rows.scales.end(), [](std::byte scale) { return scale < std::byte{0x7f}; }))
      return {};
    return make_error(ErrorCode::corrupt_file, "a scale of the weights is negative or not a number");
  });
}

Status decode_mxfp4(const Fp4Rows& rows, const RowRange& range, std::span<std::byte> out) noexcept {
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(check_fp4_range(rows, range, DType::mxfp4, out));
    const std::uint64_t blocks = rows.inputs / kMxValues;
    std::byte* to = out.data();
    for (std::uint64_t i = 0; i < range.count; ++i) {
      const std::uint64_t first = (range.first + i * range.step) * blocks;
      for (std::uint64_t block = first; block < first + blocks; ++block, to += kMxBytes) {
        to[0] = rows.scales[block];
        reorder_nibbles(rows.weights.data() + block * kMxValues / 2, kMxValues / 2, to + 1);
      }
    }
    return {};
  });
}

Status decode_nvfp4(const Fp4Rows& rows, const RowRange& range, std::span<std::byte> out) noexcept {
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(check_fp4_range(rows, range, DType::nvfp4, out));
    const std::uint64_t blocks = rows.inputs / kNvValues;
    std::byte* to = out.data();
    for (std::uint64_t i = 0; i < range.count; ++i) {
      const std::uint64_t first = (range.first + i * range.step) * blocks;
      for (std::uint64_t block = first; block < first + blocks; ++block, to += kNvBytes) {
        std::memcpy(to, rows.scales.data() + block * kNvScales, kNvScales);
        for (std::size_t part = 0; part < kNvScales; ++part) {
          reorder_nibbles(rows.weights.data() + block * kNvValues / 2 + part * 8, 8, to + kNvScales + part * 8);
        }
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
