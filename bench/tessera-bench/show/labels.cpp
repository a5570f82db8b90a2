#include "show/labels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tessera::bench {

namespace {

constexpr double kDot = 7;  // a dot's radius and a small margin, in pixels

Box around(const Point& dot) { return {dot.x - kDot, dot.y - kDot, dot.x + kDot, dot.y + kDot}; }

// Returns a box of `width` by `height` whose nearest side or corner lies at `angle` and `distance` from the dot.
Box candidate(const Point& dot, double width, double height, double angle, double distance) {
  const double dx = std::cos(angle), dy = std::sin(angle);
  const double x = dot.x + dx * (distance + width / 2), y = dot.y + dy * (distance + height / 2);
  return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

double outside(const Box& box, const Box& area) {
  const auto beyond = [](double by) { return by > 0 ? by : 0; };
  return beyond(area.left - box.left) + beyond(box.right - area.right) + beyond(area.top - box.top) +
         beyond(box.bottom - area.bottom);
}

}  // namespace

std::size_t hidden_by(std::span<const Box> text, std::span<const Point> dots) noexcept {
  return static_cast<std::size_t>(std::count_if(dots.begin(), dots.end(), [&](const Point& dot) {
    return std::any_of(text.begin(), text.end(), [&](const Box& box) { return box.overlaps(around(dot)); });
  }));
}

std::vector<Box> place_labels(std::span<const Point> dots, std::span<const double> widths, double height,
                              std::span<const Point> lines, std::span<const Box> texts, const Box& area) {
  constexpr int kAngles = 16;
  std::vector<Box> placed;
  for (std::size_t i = 0; i < dots.size(); ++i) {
    Box best{};
    double least = std::numeric_limits<double>::infinity();
    for (double distance = 10; distance <= 170; distance += 8) {
      for (int step = 0; step < kAngles; ++step) {
        const Box box = candidate(dots[i], widths[i], height, step * 2 * std::numbers::pi / kAngles, distance);
        double cost = distance + 2 * (step % 4 != 0 ? 1 : 0) + 40 * outside(box, area);
        for (const Box& other : placed) cost += box.overlaps(other) ? 400 : 0;
        for (const Box& text : texts) cost += box.overlaps(text) ? 400 : 0;
        for (const Point& dot : dots) cost += box.overlaps(around(dot)) ? 250 : 0;
        for (const Point& point : lines) cost += box.contains(point) ? 4 : 0;
        if (cost >= least) continue;
        least = cost;
        best = box;
      }
    }
    placed.push_back(best);
  }
  return placed;
}

}  // namespace tessera::bench
