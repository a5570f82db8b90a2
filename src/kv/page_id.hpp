// The number of a page. Pages of equal bytes are numbered together: those of a pool, or those of a group of a contiguous cache.
#pragma once

#include <cstdint>

namespace tessera::detail {

using PageId = std::uint32_t;

inline constexpr PageId kNoPage = ~PageId{0};

}  // namespace tessera::detail
