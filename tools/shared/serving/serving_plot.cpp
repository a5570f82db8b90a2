#include "serving/serving_plot.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "serving/svg.hpp"

namespace tessera::tool {
namespace {

constexpr double kWidth = 1000, kLeft = 250, kRight = 960, kTop = 100, kRow = 18, kHeading = 26;  // pixels

// Returns "continuous, fcfs".
std::string name_of(const ServingFigures& figures) { return fmt::format("{}, {}", figures.batching, figures.policy); }

LogAxis axis_of(std::span<const ServingFigures> all) {
  double low = 1e9, high = 1e-6;
  for (const ServingFigures& figures : all) {
    for (const ServingTime& time : kServingTimes) {
      const Histogram& of = figures.*time.of;
      if (of.count() == 0) continue;
      low = std::min(low, std::max(of.percentile(0.5), 1e-6));
      high = std::max(high, of.percentile(0.99));
    }
  }
  if (low > high) low = 1e-3, high = 1.0;  // nothing was served
  return {.low = std::log10(low / 1.5), .high = std::log10(high * 1.5), .from = kLeft, .to = kRight};
}

// Draws a line from the median, a full dot, to the 99th percentile, an open dot.
void draw_time(Svg& svg, const LogAxis& axis, const Histogram& of, double y, const char* colour) {
  if (of.count() == 0) return;
  const auto x = [&](double p) { return axis(std::max(of.percentile(p), 1e-6)); };
  const double begin = std::max(x(0.5), kLeft), end = std::max(x(0.99), kLeft);
  svg.add(fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"2\"/>\n", begin, y,
                      end, y, colour));
  svg.dot(begin, y, 5, colour, "dot");
  svg.dot(std::max(x(0.95), kLeft), y, 3, colour);
  svg.add(fmt::format("<circle class=\"open\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                      end, y, colour));
}

}  // namespace

std::string serving_svg(std::string_view title, std::string_view what, std::span<const ServingFigures> all) {
  const auto n = static_cast<double>(all.size());
  const double bottom = kTop + static_cast<double>(kServingTimes.size()) * (kHeading + n * kRow) + 10;
  const double summary = bottom + 66;
  Svg svg(kWidth, summary + n * kRow + 10);
  svg.text(40, 36, title, "class=\"text\" font-size=\"20\" font-weight=\"600\"");
  svg.text(40, 58, what, "class=\"faint\"");
  svg.text(40, 78, "full dot: median; small dot: 95 %; ring: 99 %", "class=\"faint\"");

  const LogAxis axis = axis_of(all);
  axis.ticks(1e-3, [&](double at, double value) {
    svg.line(at, kTop, at, bottom, "grid");
    svg.text(at, bottom + 18, plain(value), "class=\"faint\" text-anchor=\"middle\"");
  });
  svg.text((kLeft + kRight) / 2, bottom + 36, "milliseconds", "class=\"faint\" text-anchor=\"middle\"");

  const auto colour = [](std::size_t i) { return kColours.at(i % kColours.size()); };
  double y = kTop;
  for (const ServingTime& time : kServingTimes) {
    svg.text(40, y + kHeading - 8, time.title, "class=\"text\" font-weight=\"600\"");
    y += kHeading;
    for (std::size_t i = 0; i < all.size(); ++i, y += kRow) {
      svg.text(56, y + 4, name_of(all[i]));
      draw_time(svg, axis, all[i].*time.of, y, colour(i));
    }
  }
  y = summary;
  for (std::size_t i = 0; i < all.size(); ++i, y += kRow) {
    const ServingFigures& f = all[i];
    svg.dot(46, y - 4, 5, colour(i));
    svg.text(56, y,
             fmt::format("{}: {:.1f} tokens/s, {:.2f} requests/s served well, prefix hits {:.1f} % of {:.1f} %, {} preempted, {} refused",
                         name_of(f), f.tokens_per_second(), f.goodput(), 100 * f.prefix_hit(), 100 * f.prefix_ideal,
                         f.preempted, f.refused));
  }
  return std::move(svg).finish();
}

}  // namespace tessera::tool
