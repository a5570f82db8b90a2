#include "show/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <tessera/version.hpp>

#include "serving/svg.hpp"
#include "show/labels.hpp"
#include "show/report.hpp"

namespace tessera::bench {

namespace {

constexpr double kWidth = 1000, kHeight = 620, kLabelHeight = 15, kLetter = 6.3;  // pixels
constexpr double kBoldLetter = 7.2;
constexpr Box kArea = {80, 96, 960, 540};
using tool::kColours;  // [Test]

class Picture {
 public:
  Picture(const Subject& setting, std::span<const Measurement> results, std::span<const Limits> history)
      : setting_(setting), results_(results) {
    for (const Limits& limits : history) {
      read_ = std::max(read_, limits.read);
      matrix_ = std::max(matrix_, limits.matrix);
    }
    const double ridge = matrix_ / read_;
    double left = ridge / 300, right = ridge * 10, bottom = matrix_ / 100;
    for (const Measurement& result : results_) {
      left = std::min(left, intensity(result) / 2);
      right = std::max(right, intensity(result) * 3);
      bottom = std::min(bottom, result.flop_per_second() / 3);
    }
    x_ = {std::log10(left), std::log10(right), kArea.left, kArea.right};
    y_ = {std::log10(bottom), std::log10(matrix_ * 2.5), kArea.bottom, kArea.top};
    for (const Measurement& result : results_) order_.push_back(&result);
    std::sort(order_.begin(), order_.end(),
              [](const Measurement* a, const Measurement* b) { return intensity(*a) < intensity(*b); });
    for (const Measurement* result : order_) dots_.push_back({x_(intensity(*result)), y_(result->flop_per_second())});
  }

  [[nodiscard]] std::string draw() {
    titles();
    grid();
    roofs();
    legend();
    dots();
    return std::move(svg_).finish();
  }

 private:
  static double intensity(const Measurement& result) { return result.flop_per_token / result.bytes_per_token; }

  void titles() {
    svg_.text(kArea.left, 36, fmt::format("{}, {}", setting_.shape, setting_.format),
              "class=\"text\" font-size=\"20\" font-weight=\"600\"");
    svg_.text(kArea.left, 58,
              fmt::format("{}, {} threads; tessera {}, {}, {}", setting_.machine, setting_.threads, version(),
                          setting_.isa, setting_.family),
              "class=\"faint\"");
    svg_.text((kArea.left + kArea.right) / 2, kArea.bottom + 48, "operations a byte",
              "class=\"faint\" text-anchor=\"middle\"");
    svg_.text(0, 0, "TFLOP/s",
              fmt::format("class=\"faint\" text-anchor=\"middle\" transform=\"translate(26 {}) rotate(-90)\"",
                          (kArea.top + kArea.bottom) / 2));
  }

  void grid() {
    x_.ticks(1, [&](double at, double value) {
      svg_.line(at, kArea.top, at, kArea.bottom, "grid");
      svg_.text(at, kArea.bottom + 20, tool::plain(value), "class=\"faint\" text-anchor=\"middle\"");
    });
    y_.ticks(1e12, [&](double at, double value) {
      svg_.line(kArea.left, at, kArea.right, at, "grid");
      svg_.text(kArea.left - 10, at + 4, tool::plain(value), "class=\"faint\" text-anchor=\"end\"");
    });
  }

  void roofs() {
    const double lowest = std::max(std::pow(10, x_.low), std::pow(10, y_.low) / read_), ridge = matrix_ / read_;
    const Point foot{x_(lowest), y_(lowest * read_)}, top{x_(ridge), y_(matrix_)};
    svg_.add(fmt::format("<polyline class=\"roof\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n", foot.x,
                         foot.y, top.x, top.y, kArea.right, top.y));
    name_level_roof(top, fmt::format("{} {} TFLOP/s", setting_.matrix_unit, number(matrix_ / 1e12)));
    name_sloping_roof(foot, top, fmt::format("memory {} GB/s", number(read_ / 1e9)));
    for (int i = 0; i <= 150; ++i) {
      const double share = i / 150.0;
      roof_.push_back({foot.x + share * (top.x - foot.x), foot.y + share * (top.y - foot.y)});
      roof_.push_back({top.x + share * (kArea.right - top.x), top.y});
    }
  }

  // Writes the name of the level roof (matrix products) where it hides the fewest dots.
  void name_level_roof(const Point& ridge, const std::string& name) {
    const double width = static_cast<double>(name.size()) * kBoldLetter;
    std::vector<Box> places;
    for (const double right : {kArea.right - 6, ridge.x + 10 + width, (kArea.right + ridge.x + width) / 2}) {
      for (const double base : {ridge.y - 9, ridge.y + 18}) {
        places.push_back({right - width, base - kLabelHeight + 2, right, base + 4});
      }
    }
    const auto hidden = [&](const Box& box) { return hidden_by({&box, 1}, dots_); };
    const Box place = *std::min_element(places.begin(), places.end(),
                                        [&](const Box& a, const Box& b) { return hidden(a) < hidden(b); });
    svg_.text(place.right, place.bottom - 4, name, "class=\"text\" text-anchor=\"end\" font-weight=\"600\"");
    names_.push_back(place);
  }

  void name_sloping_roof(const Point& foot, const Point& ridge, const std::string& name) {
    const double angle = std::atan2(ridge.y - foot.y, ridge.x - foot.x), above = -9 - kLabelHeight / 3;
    const double width = static_cast<double>(name.size()) * kBoldLetter;
    // Returns small boxes along the sloping name that together cover it. `share`: the place of the name's middle along the roof.
    const auto boxes_at = [&](double share) {
      const Point middle{foot.x + share * (ridge.x - foot.x), foot.y + share * (ridge.y - foot.y)};
      std::vector<Box> boxes;
      for (double along = -width / 2; along <= width / 2; along += kLabelHeight / 2) {
        const double x = middle.x + along * std::cos(angle) - above * std::sin(angle);
        const double y = middle.y + along * std::sin(angle) + above * std::cos(angle);
        boxes.push_back({x - kLabelHeight / 2, y - kLabelHeight / 2, x + kLabelHeight / 2, y + kLabelHeight / 2});
      }
      return boxes;
    };
    constexpr std::array<double, 5> kShares = {0.62, 0.4, 0.75, 0.25, 0.5};
    const auto hidden = [&](double share) { return hidden_by(boxes_at(share), dots_); };
    const double share =
        *std::min_element(kShares.begin(), kShares.end(), [&](double a, double b) { return hidden(a) < hidden(b); });
    svg_.text(
        0, -9, name,
        fmt::format("class=\"text\" text-anchor=\"middle\" font-weight=\"600\" transform=\"translate({:.1f} {:.1f}) "
                    "rotate({:.2f})\"",
                    foot.x + share * (ridge.x - foot.x), foot.y + share * (ridge.y - foot.y), angle * 57.29578));
    const std::vector<Box> boxes = boxes_at(share);
    names_.insert(names_.end(), boxes.begin(), boxes.end());
  }

  void legend() {
    double x = kArea.left;
    for (std::size_t i = 0; i < kColours.size(); ++i) {
      const auto is = [&](const Measurement& result) { return static_cast<std::size_t>(result.test) == i; };
      if (std::none_of(results_.begin(), results_.end(), is)) continue;
      const std::string_view name = to_string(static_cast<Test>(i));
      svg_.dot(x + 5, 78, 5, kColours.at(i));
      svg_.text(x + 16, 82, name);
      x += static_cast<double>(name.size()) * kLetter + 40;
    }
  }

  static std::string label(const Measurement& r) {
    std::string what;
    switch (r.test) {
      case Test::prefill:
        what = fmt::format("{} tokens", r.rows);
        break;
      case Test::decode:
        what = "one";
        break;
      case Test::batch:
        what = fmt::format("{} together", r.batch);
        break;
      case Test::depth:
        what = fmt::format("at {}", r.depth);
        break;
    }
    return fmt::format("{}: {}/s", what, number(r.median()));
  }

  void dots() {
    std::vector<double> widths;
    for (const Measurement* result : order_) widths.push_back(static_cast<double>(label(*result).size()) * kLetter);
    const std::vector<Box> boxes = place_labels(dots_, widths, kLabelHeight, roof_, names_, kArea);
    for (std::size_t i = 0; i < order_.size(); ++i) leader(dots_[i], boxes[i]);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      svg_.dot(dots_[i].x, dots_[i].y, 5.5, kColours.at(static_cast<std::size_t>(order_[i]->test)), "dot");
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      svg_.text((boxes[i].left + boxes[i].right) / 2, boxes[i].bottom - 4, label(*order_[i]),
                "class=\"text\" text-anchor=\"middle\"");
    }
  }

  // Draws a line from a dot to its label, if the label is not right beside the dot.
  void leader(const Point& dot, const Box& box) {
    const Point near{std::clamp(dot.x, box.left, box.right), std::clamp(dot.y, box.top, box.bottom)};
    if (std::hypot(near.x - dot.x, near.y - dot.y) > 16) svg_.line(dot.x, dot.y, near.x, near.y, "leader");
  }

  const Subject& setting_;
  std::span<const Measurement> results_;
  double read_ = 0, matrix_ = 0;
  tool::LogAxis x_{}, y_{};
  std::vector<const Measurement*> order_;  // the results, sorted by operations a byte
  std::vector<Point> dots_;                // the results' dots, in the same order
  std::vector<Point> roof_;                // points along the roofs, which labels should not cover
  std::vector<Box> names_;                 // boxes of the roofs' names, which labels should not cover
  tool::Svg svg_{kWidth, kHeight};
};

}  // namespace

std::string roofline_svg(const Subject& setting, std::span<const Measurement> results,
                         std::span<const Limits> history) {
  return Picture(setting, results, history).draw();
}

}  // namespace tessera::bench
