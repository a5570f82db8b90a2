// A file's rows into the bytes of a device's planes (packed_layout.hpp), chunk by chunk: a chunk of rows is one stretch
// of each plane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tessera/core/dtype.hpp>

#include "cuda/packed_layout.hpp"

namespace tessera::cuda {

struct Stretch {
  std::uint64_t to = 0;    // from the matrix's start
  std::uint64_t from = 0;  // in the staging buffer
  std::uint64_t bytes = 0;
};

// Where pack_rows() puts outputs [first, first + count), and where they belong; empty for planes that the form has not.
[[nodiscard]] std::array<Stretch, kPlanes> stretches(const DeviceMatrix& matrix, std::uint64_t first,
                                                     std::uint64_t count) noexcept;

// A staging buffer for so many rows.
[[nodiscard]] std::uint64_t staging_bytes(PackedForm form, std::uint64_t inputs, std::uint64_t count) noexcept;

// Packs `count` rows of whole blocks in the format `type`, whose form is the matrix's.
void pack_rows(DType type, const DeviceMatrix& matrix, const std::byte* rows, std::uint64_t count,
               std::byte* staging) noexcept;

}  // namespace tessera::cuda
