#include "plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <tessera/version.hpp>

#include "labels.hpp"
#include "report.hpp"

namespace tessera::bench {

namespace {

constexpr double kWidth = 1000, kHeight = 620, kLabelHeight = 15, kLetter = 6.3;  // pixels
constexpr double kBoldLetter = 7.2;
constexpr Box kArea = {80, 96, 960, 540};
constexpr std::array<const char*, 4> kColours = {"#0072b2", "#d55e00", "#009e73", "#b3568f"};  // by Test; Okabe and Ito

// Light or dark as the viewer is; a viewer that knows nothing of it gets light.
constexpr const char* kStyle = R"(<style>
  .card { fill: #ffffff; stroke: #d0d7de } .text { fill: #1f2328 } .faint { fill: #656d76 }
  .grid { stroke: #d8dee4; stroke-width: 1 } .roof { stroke: #57606a; stroke-width: 2.5; fill: none }
  .leader { stroke: #8c959f; stroke-width: 1 } .dot { stroke: #ffffff; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #30363d } .text { fill: #e6edf3 } .faint { fill: #8d96a0 }
    .grid { stroke: #21262d } .roof { stroke: #8d96a0 } .dot { stroke: #0d1117 }
  }
</style>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (static_cast<unsigned char>(c) < 0x20) out += ' ';
    else out += c;
  }
  return out;
}

// "0.001", "5", "20000": a power of ten with as many digits as it needs.
std::string plain(double value) {
  return fmt::format("{:.{}f}", value, value >= 1 ? 0 : static_cast<int>(std::lround(-std::log10(value))));
}

// From a logarithm's range to pixels.
struct Axis {
  double low, high;    // powers of ten
  double from, to;     // pixels
  [[nodiscard]] double operator()(double value) const noexcept {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
};

class Picture {
 public:
  Picture(const Setting& setting, std::span<const Measurement> results, std::span<const Limits> history)
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
    svg_ = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                       "height=\"{1}\" font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\" "
                       "font-size=\"12\">\n{2}",
                       kWidth, kHeight, kStyle);
    svg_ += fmt::format("<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n",
                        kWidth - 1, kHeight - 1);
    titles();
    grid();
    roofs();
    legend();
    dots();
    return svg_ + "</svg>\n";
  }

 private:
  static double intensity(const Measurement& result) { return result.flop_per_token / result.bytes_per_token; }

  void text(double x, double y, std::string_view what, std::string_view attributes = "class=\"text\"") {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, escaped(what));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    svg_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1,
                        x2, y2, style);
  }

  void titles() {
    text(kArea.left, 36, fmt::format("{}, {}", setting_.shape, setting_.format),
         "class=\"text\" font-size=\"20\" font-weight=\"600\"");
    text(kArea.left, 58,
         fmt::format("{}, {} threads; tessera {}, {}, {}", setting_.machine, setting_.threads, version(), setting_.isa,
                     setting_.family),
         "class=\"faint\"");
    text((kArea.left + kArea.right) / 2, kArea.bottom + 48, "operations a byte",
         "class=\"faint\" text-anchor=\"middle\"");
    text(0, 0, "TFLOP/s",
         fmt::format("class=\"faint\" text-anchor=\"middle\" transform=\"translate(26 {}) rotate(-90)\"",
                     (kArea.top + kArea.bottom) / 2));
  }

  // mark(pixel, value) at each power of ten; `unit` is what the axis counts in.
  template <class Mark>
  static void ticks(const Axis& axis, double unit, const Mark& mark) {
    for (int power = static_cast<int>(std::floor(axis.low)) - 15; power <= static_cast<int>(axis.high) + 1; ++power) {
      const double value = std::pow(10.0, power), at = std::log10(value * unit);
      if (at >= axis.low && at <= axis.high) mark(axis(value * unit), value);
    }
  }

  void grid() {
    ticks(x_, 1, [&](double at, double value) {
      line(at, kArea.top, at, kArea.bottom, "grid");
      text(at, kArea.bottom + 20, plain(value), "class=\"faint\" text-anchor=\"middle\"");
    });
    ticks(y_, 1e12, [&](double at, double value) {
      line(kArea.left, at, kArea.right, at, "grid");
      text(kArea.left - 10, at + 4, plain(value), "class=\"faint\" text-anchor=\"end\"");
    });
  }

  void roofs() {
    const double lowest = std::max(std::pow(10, x_.low), std::pow(10, y_.low) / read_), ridge = matrix_ / read_;
    const Point foot{x_(lowest), y_(lowest * read_)}, top{x_(ridge), y_(matrix_)};
    svg_ += fmt::format("<polyline class=\"roof\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n", foot.x,
                        foot.y, top.x, top.y, kArea.right, top.y);
    name_level_roof(top, fmt::format("{} {} TFLOP/s", setting_.matrix_unit, number(matrix_ / 1e12)));
    name_sloping_roof(foot, top, fmt::format("memory {} GB/s", number(read_ / 1e9)));
    for (int i = 0; i <= 150; ++i) {
      const double share = i / 150.0;
      roof_.push_back({foot.x + share * (top.x - foot.x), foot.y + share * (top.y - foot.y)});
      roof_.push_back({top.x + share * (kArea.right - top.x), top.y});
    }
  }

  // The roofs' names stand where they hide the fewest dots.
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
    text(place.right, place.bottom - 4, name, "class=\"text\" text-anchor=\"end\" font-weight=\"600\"");
    names_.push_back(place);
  }

  void name_sloping_roof(const Point& foot, const Point& ridge, const std::string& name) {
    const double angle = std::atan2(ridge.y - foot.y, ridge.x - foot.x), above = -9 - kLabelHeight / 3;
    const double width = static_cast<double>(name.size()) * kBoldLetter;
    // Small boxes along the name, around its middle.
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
    text(0, -9, name,
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
      svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"78\" r=\"5\" fill=\"{}\"/>\n", x + 5, kColours.at(i));
      text(x + 16, 82, name);
      x += static_cast<double>(name.size()) * kLetter + 40;
    }
  }

  static std::string label(const Measurement& r) {
    std::string what;
    switch (r.test) {
      case Test::prefill: what = fmt::format("{} tokens", r.rows); break;
      case Test::decode: what = "one"; break;
      case Test::batch: what = fmt::format("{} together", r.batch); break;
      case Test::depth: what = fmt::format("at {}", r.depth); break;
    }
    return fmt::format("{}: {}/s", what, number(r.median()));
  }

  void dots() {
    std::vector<double> widths;
    for (const Measurement* result : order_) widths.push_back(static_cast<double>(label(*result).size()) * kLetter);
    const std::vector<Box> boxes = place_labels(dots_, widths, kLabelHeight, roof_, names_, kArea);
    for (std::size_t i = 0; i < order_.size(); ++i) leader(dots_[i], boxes[i]);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      svg_ += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5.5\" fill=\"{}\"/>\n", dots_[i].x,
                          dots_[i].y, kColours.at(static_cast<std::size_t>(order_[i]->test)));
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      text((boxes[i].left + boxes[i].right) / 2, boxes[i].bottom - 4, label(*order_[i]),
           "class=\"text\" text-anchor=\"middle\"");
    }
  }

  // From a dot to a label that is not beside it.
  void leader(const Point& dot, const Box& box) {
    const Point near{std::clamp(dot.x, box.left, box.right), std::clamp(dot.y, box.top, box.bottom)};
    if (std::hypot(near.x - dot.x, near.y - dot.y) > 16) line(dot.x, dot.y, near.x, near.y, "leader");
  }

  const Setting& setting_;
  std::span<const Measurement> results_;
  double read_ = 0, matrix_ = 0;
  Axis x_{}, y_{};
  std::vector<const Measurement*> order_;  // by operations a byte
  std::vector<Point> dots_;                // where they are
  std::vector<Point> roof_;                // along the roofs, and
  std::vector<Box> names_;                 // their names, for labels to keep off
  std::string svg_;
};

}  // namespace

std::string roofline_svg(const Setting& setting, std::span<const Measurement> results,
                         std::span<const Limits> history) {
  return Picture(setting, results, history).draw();
}

}  // namespace tessera::bench
