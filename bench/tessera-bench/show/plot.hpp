// Draws a roofline plot (Williams, Waterman, Patterson 2009): a dot for each result's operations a second, over its operations a byte, and
// above the dots the limits ("roofs") that the machine's bandwidth and arithmetic set.
#pragma once

#include <span>
#include <string>

#include "measure/measurement.hpp"

namespace tessera::bench {

// Returns the plot as SVG. The roofs are the highest limits in `history`.
[[nodiscard]] std::string roofline_svg(const Subject& setting, std::span<const Measurement> results,
                                       std::span<const Limits> history);

}  // namespace tessera::bench
