// Packs rows of a weight matrix in a file's format into the planes of the device's matrix (packed_layout.hpp). One call packs a chunk: some
// consecutive rows, which become one consecutive piece of each plane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tessera/core/dtype.hpp>

#include "cuda/weights/packed_layout.hpp"
#include "formats/formats.hpp"

namespace tessera::cuda {

// Returns the form in which a device holds weights of `type`; DeviceForm::count if `type` is not a weight format.
[[nodiscard]] constexpr DeviceForm device_form_of(DType type) noexcept { return device_form(formats::packed_form_of(type)); }

struct Stretch {
  std::uint64_t to = 0;    // bytes from the matrix's start
  std::uint64_t from = 0;  // bytes from the staging buffer's start
  std::uint64_t bytes = 0;
};

// Says what to copy after pack_rows() has packed outputs [first, first + count). Returns for each plane where its bytes are in the staging
// buffer, and where they belong in the matrix. Planes that the form does not have get an empty entry.
[[nodiscard]] std::array<Stretch, kPlanes> stretches(const DeviceMatrix& matrix, std::uint64_t first,
                                                     std::uint64_t count) noexcept;

// Returns the bytes of a staging buffer for `count` rows.
[[nodiscard]] std::uint64_t staging_bytes(DeviceForm form, std::uint64_t inputs, std::uint64_t count) noexcept;

// Packs `count` rows in the file's format `type` into the staging buffer. Each row of the file must consist of whole blocks, and the matrix
// must have the packed form that belongs to `type`.
void pack_rows(DType type, const DeviceMatrix& matrix, const std::byte* rows, std::uint64_t count,
               std::byte* staging) noexcept;

}  // namespace tessera::cuda
