// The shape of a tensor in a folder, for tensors whose shape an arrangement (arrangements.hpp) changes when the model is read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "hub/table.hpp"

namespace tessera::detail::hub {

struct FolderDims {
  std::uint32_t n = 0;
  std::array<std::uint64_t, 4> dims = {1, 1, 1, 1};  // innermost first
};

// Returns the shape that a tensor of the folder must have, so that the arrangement `arrange` makes from it a tensor of the shape `made`.
// nullopt: this is not implemented for the arrangement, so a folder of this type cannot be written.
[[nodiscard]] std::optional<FolderDims> folder_dims(Arrange arrange, const Shape& shape, const FolderDims& made) noexcept;

}  // namespace tessera::detail::hub
