// Encodes rows of weights whose inputs are not equally important.
#pragma once

#include <cstddef>
#include <span>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

namespace tessera::formats {

// Returns whether the format's encoder can use importance: Q2_K to Q6_K, IQ4_NL, IQ4_XS, and Q4_0, Q4_1, Q5_0, Q5_1, whose encoders
// search for a scale only if importance is known.
[[nodiscard]] bool heeds_importance(DType type) noexcept;

// Encodes like encode_row() of rows.hpp, but weighs each value's error by its importance: the mean square of the inputs that the value is
// multiplied by. importance: one number for each value; numbers that are negative or not finite count as 0, and a block whose importance is
// all 0 is encoded without importance. For a format that cannot use importance, the result is that of encode_row().
[[nodiscard]] Status encode_weighted_row(DType type, std::span<const float> values, std::span<const float> importance,
                                         std::span<std::byte> blocks) noexcept;

}  // namespace tessera::formats
