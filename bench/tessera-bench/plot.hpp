// A roofline (Williams, Waterman, Patterson 2009): what each result reaches, below what the machine allows for its
// operations a byte.
#pragma once

#include <span>
#include <string>

#include "measurement.hpp"

namespace tessera::bench {

// As SVG. The roofs are the best of `history`.
[[nodiscard]] std::string roofline_svg(const Subject& setting, std::span<const Measurement> results,
                                       std::span<const Limits> history);

}  // namespace tessera::bench
