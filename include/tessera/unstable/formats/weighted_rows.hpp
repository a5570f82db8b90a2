// Encoding rows of weights where some inputs matter more than others. Separate from rows.hpp, for few need it.
#pragma once

#include <cstddef>
#include <span>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

namespace tessera::formats {

// Whether a format's encoder has a choice that importance can guide: Q2_K to Q6_K, IQ4_NL, IQ4_XS, and
// Q4_0, Q4_1, Q5_0, Q5_1, which search where it is known.
[[nodiscard]] bool heeds_importance(DType type) noexcept;

// encode_row() of rows.hpp that takes care of each value as its importance says: the mean of the squares of what it is
// multiplied by. Zero is allowed; what is negative or not finite counts as zero, and a block whose importance is all zero
// is encoded as without. importance: as many as values. Formats that do not heed it give encode_row()'s bytes.
[[nodiscard]] Status encode_weighted_row(DType type, std::span<const float> values, std::span<const float> importance,
                                         std::span<std::byte> blocks) noexcept;

}  // namespace tessera::formats
