// Places labels beside the dots of a plot so that the labels do not overlap.
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

// Returns the number of dots that a text in these boxes would hide.
[[nodiscard]] std::size_t hidden_by(std::span<const Box> text, std::span<const Point> dots) noexcept;

// Returns where the labels of the dots go: for each dot i a box of `widths[i]` by `height`, inside `area` and as near to the dot as
// possible. If there is room, a box covers no other box, no dot, none of `texts` (boxes of other texts) and none of `lines` (points along
// lines that should stay visible).
[[nodiscard]] std::vector<Box> place_labels(std::span<const Point> dots, std::span<const double> widths, double height,
                                            std::span<const Point> lines, std::span<const Box> texts, const Box& area);

}  // namespace tessera::bench
