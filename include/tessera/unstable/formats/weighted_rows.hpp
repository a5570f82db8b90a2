// Encodes rows of weights whose inputs are not equally important.
#pragma once

#include <cstddef>
#include <span>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

namespace tessera::formats {

// Returns whether the encoder of this format uses importance. These formats do: Q2_K to Q6_K, IQ4_NL, IQ4_XS, Q4_0, Q4_1, Q5_0, Q5_1. (The
// encoders of the last four search for a good scale only if importance is given.)
[[nodiscard]] bool heeds_importance(DType type) noexcept;

// Encodes a row like encode_row() of rows.hpp, but weighs each value's rounding error by its importance: the mean square of the inputs by
// which the value is multiplied. `importance` has one number for each value. Numbers that are negative or not finite count as 0; a block
// whose importance is all 0 is encoded without importance. If the format cannot use importance, the result is that of encode_row().
[[nodiscard]] Status encode_weighted_row(DType type, std::span<const float> values, std::span<const float> importance,
                                         std::span<std::byte> blocks) noexcept;

}  // namespace tessera::formats
