// Opens a tile of weights in any packed form that keeps the file's blocks (decodes it to integers and scales), by the function that is
// fastest on this instruction set.
#pragma once

#include "cpu/kernels/products/open_grids.hpp"
#include "cpu/kernels/products/open_lanes.hpp"

namespace tessera::cpu::TESSERA_ISA {

template <PackedForm kForm>
TESSERA_INLINE void open_kept([[maybe_unused]] const Grids& points, const std::byte* tile, OpenTile& open) {
  if constexpr (lane_parts(kForm).n != 0) {
    open_lanes<kForm>(tile, open);
#if defined(__AVX512F__)
  } else if constexpr (has_grid(kForm)) {
    open_grid<kForm>(points, tile, open);
#endif
  } else {
    open_tile(kForm, tile, open);
  }
}

}  // namespace tessera::cpu::TESSERA_ISA
