// What a served trace was like, as a picture: of each time its median, its 95th and its 99th percentile, ways to serve it
// below each other.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "serving_figures.hpp"

namespace tessera::tool {

// As SVG. `title` and `what` say what was served, and on what.
[[nodiscard]] std::string serving_svg(std::string_view title, std::string_view what, std::span<const ServingFigures> all);

}  // namespace tessera::tool
