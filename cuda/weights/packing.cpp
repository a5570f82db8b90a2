#include "cuda/weights/packing.hpp"

#include <cstring>
#include <type_traits>

#include "formats/formats.hpp"

namespace tessera::cuda {

namespace {

using formats::Block256;
using formats::Block32;

// For each plane, the address at which the next data of a row are written.
struct Places {
  std::byte* of[kPlanes];

  template <class T>
  void put(Plane plane, T value) noexcept {
    std::byte*& at = of[static_cast<std::size_t>(plane)];
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
};

// Writes 32 integers of `bits` bits: one unit, or two units if they have 8 bits.
template <unsigned bits>
void put_quants(const std::uint8_t* q, Places& to) noexcept {
  if constexpr (bits == 8) {
    std::array<std::uint8_t, 32> unit;
    std::memcpy(unit.data(), q, 32);
    to.put(Plane::quants, unit);
    return;
  }
  std::array<std::uint8_t, kUnitBytes> unit;
  for (std::size_t i = 0; i < kUnitBytes; ++i) {
    const std::uint8_t* const low = q + i / 4 * 8 + i % 4;
    unit[i] = static_cast<std::uint8_t>((low[0] & 15) | (low[4] & 15) << 4);
  }
  to.put(Plane::quants, unit);
  if constexpr (bits == 5) {
    std::uint32_t high = 0;
    for (std::size_t k = 0; k < 32; ++k) high |= std::uint32_t{q[k]} >> 4 << (k % 4 * 8 + k / 4);
    to.put(Plane::high, high);
  } else if constexpr (bits == 6) {
    for (std::size_t half = 0; half < 32; half += 16) {
      std::uint32_t high = 0;
      for (std::size_t k = 0; k < 16; ++k) high |= std::uint32_t{q[half + k]} >> 4 << (k % 4 * 8 + k / 4 * 2);
      to.put(Plane::high, high);
    }
  }
}

template <DeviceForm form>
void put_block(const Block32& parts, Places& to) noexcept {
  constexpr FormParts kParts = form_parts(form);
  put_quants<kParts.bits>(parts.q.data(), to);
  to.put(Plane::scales, parts.d);
  if constexpr (kParts.has_min) to.put(Plane::scales, parts.m);
}

template <DeviceForm form>
void put_block(const Block256& parts, Places& to) noexcept {
  constexpr FormParts kParts = form_parts(form);
  for (std::size_t k = 0; k < 256; k += 32) put_quants<kParts.bits>(parts.q.data() + k, to);
  if constexpr (kParts.bits == 6) {
    for (const std::uint8_t scale : parts.scales) to.put(Plane::scales, static_cast<std::uint8_t>(scale ^ 0x80u));
    to.put(Plane::supers, parts.d);
  } else {
    std::byte header[16] = {};  // laid out like the first 16 bytes of the file's block; d and dmin, the first four bytes, are not needed
    std::memcpy(header + 4, parts.scales.data(), 12);
    formats::detail::MinScales scales;
    scales.load(header);
    for (std::size_t j = 0; j < 8; ++j) {
      to.put(Plane::scales, scales.scale[j]);
      to.put(Plane::scales, scales.min[j]);
    }
    to.put(Plane::supers, parts.d);
    to.put(Plane::supers, parts.dmin);
  }
}

template <std::size_t n>
void put_integers(const std::uint8_t* q, Places& to) noexcept {
  for (std::size_t i = 0; i < n; i += 32) {
    if (n - i >= 32) put_quants<8>(q + i, to);
    else for (std::size_t k = i; k < n; ++k) to.put(Plane::quants, q[k]);
  }
}

// Writes an opened block of n values.
template <std::size_t n, DeviceForm form>
void put_open(const formats::OpenBlock& parts, Places& to) noexcept {
  put_integers<n>(parts.q.data(), to);
  for (std::size_t j = 0; j < n / 16; ++j) to.put(Plane::scales, parts.d[j]);
}

template <std::size_t n, DeviceForm form>
void put_open(const formats::OpenSuperblock& parts, Places& to) noexcept {
  put_integers<n>(parts.q.data(), to);
  for (std::size_t j = 0; j < n / 16; ++j) {
    to.put(Plane::scales, parts.d * static_cast<float>(parts.scale[j]));
    if constexpr (form == DeviceForm::open_min) to.put(Plane::scales, -(parts.dmin * static_cast<float>(parts.min[j])));
  }
}

}  // namespace

std::array<Stretch, kPlanes> stretches(const DeviceMatrix& matrix, std::uint64_t first, std::uint64_t count) noexcept {
  std::array<Stretch, kPlanes> list;
  std::uint64_t from = 0;
  for (std::size_t p = 0; p < kPlanes; ++p) {
    const std::uint64_t bytes = count * matrix.stride[p];
    list[p] = {.to = matrix.offset[p] + first * matrix.stride[p], .from = from, .bytes = bytes};
    from += round_up(bytes, kUnitBytes);
  }
  return list;
}

std::uint64_t staging_bytes(DeviceForm form, std::uint64_t inputs, std::uint64_t count) noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t p = 0; p < kPlanes; ++p) {
    bytes += round_up(plane_stride(form, static_cast<Plane>(p), inputs) * count, kUnitBytes);
  }
  return bytes;
}

void pack_rows(DType type, const DeviceMatrix& matrix, const std::byte* rows, std::uint64_t count,
               std::byte* staging) noexcept {
  const auto places = stretches(matrix, 0, count);
  formats::visit(type, [&]<class F>(std::type_identity<F>) {
    const std::size_t blocks = matrix.inputs / F::block_values, row_bytes = blocks * F::block_bytes;
    constexpr DeviceForm kForm = device_form(F::packed_form);
    if constexpr (!is_quantised(kForm)) {
      for (std::uint64_t r = 0; r < count; ++r) {
        std::byte* const to = staging + r * matrix.stride[0];
        std::memcpy(to, rows + r * row_bytes, row_bytes);
        std::memset(to + row_bytes, 0, matrix.stride[0] - row_bytes);
      }
    } else {
      Places to;
      for (std::size_t p = 0; p < kPlanes; ++p) to.of[p] = staging + places[p].from;
      for (std::uint64_t b = 0; b < count * blocks; ++b) {  // rows of whole blocks follow each other without gaps
        if constexpr (formats::keeps_blocks(F::packed_form)) {
          formats::Open<F> parts;
          F::open(rows + b * F::block_bytes, parts);
          put_open<F::block_values, kForm>(parts, to);
        } else {
          std::conditional_t<F::block_values == 32, Block32, Block256> parts;
          F::unpack(rows + b * F::block_bytes, parts);
          put_block<kForm>(parts, to);
        }
      }
    }
  });
}

}  // namespace tessera::cuda
