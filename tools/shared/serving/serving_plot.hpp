// Draws the figures of served traces: the median, the 95th and the 99th percentile of each time, one run below the other.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "serving/serving_figures.hpp"

namespace tessera::tool {

// Returns an SVG picture. `title` names the trace, `what` the machine or the model.
[[nodiscard]] std::string serving_svg(std::string_view title, std::string_view what, std::span<const ServingFigures> all);

}  // namespace tessera::tool
