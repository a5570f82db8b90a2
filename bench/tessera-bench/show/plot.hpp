// Draws a roofline plot (Williams, Waterman, Patterson 2009). Each result is a dot: its height is operations a second, its place from left
// to right is operations for each byte that is read. Lines above the dots ("roofs") show the limits set by the machine's bandwidth and
// arithmetic.
#pragma once

#include <span>
#include <string>

#include "measure/measurement.hpp"

namespace tessera::bench {

// Returns the plot as SVG. The roofs are the highest limits in `history`.
[[nodiscard]] std::string roofline_svg(const Subject& setting, std::span<const Measurement> results,
                                       std::span<const Limits> history);

}  // namespace tessera::bench
