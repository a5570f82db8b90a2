// The number of a page, unique within a pool or, in a contiguous cache, within a group. All pages of a pool or group have the same size.
#pragma once

#include <cstdint>

namespace tessera::detail {

using PageId = std::uint32_t;

inline constexpr PageId kNoPage = ~PageId{0};

}  // namespace tessera::detail
