// Where to put labels beside dots so that they do not lie on each other.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tessera::bench {

struct Point {
  double x, y;
};

struct Box {
  double left, top, right, bottom;

  [[nodiscard]] bool overlaps(const Box& other) const noexcept {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  [[nodiscard]] bool contains(const Point& point) const noexcept {
    return left < point.x && point.x < right && top < point.y && point.y < bottom;
  }
};

// How many dots would be hidden by a text in these boxes.
[[nodiscard]] std::size_t hidden_by(std::span<const Box> text, std::span<const Point> dots) noexcept;

// A box of `widths[i]` by `height` for each dot, inside `area`: as near as the other boxes, the dots, `texts`, where others
// stand, and `lines` allow, which are points along what should stay visible.
[[nodiscard]] std::vector<Box> place_labels(std::span<const Point> dots, std::span<const double> widths, double height,
                                            std::span<const Point> lines, std::span<const Box> texts, const Box& area);

}  // namespace tessera::bench
