// An SVG picture: a card with texts, lines and dots, in the viewer's light or dark mode (light if the viewer has no modes).
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tessera::tool {

inline constexpr std::array<const char*, 6> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                        "#b3568f", "#e69f00", "#56b4e9"};  // Okabe and Ito

// Maps a logarithmic range to pixels.
struct LogAxis {
  double low, high;  // powers of ten
  double from, to;   // pixels
  [[nodiscard]] double operator()(double value) const noexcept {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
  // Calls mark(pixel, value) for each power of ten. `unit`: the unit of the axis.
  template <class Mark>
  void ticks(double unit, const Mark& mark) const {
    for (int power = static_cast<int>(std::floor(low)) - 15; power <= static_cast<int>(high) + 15; ++power) {
      const double value = std::pow(10.0, power), at = std::log10(value * unit);
      if (at >= low && at <= high) mark((*this)(value * unit), value);
    }
  }
};

// Returns the number without an exponent, with as many digits as a power of ten of its size needs: "0.001", "5", "20000".
inline std::string plain(double value) {
  return fmt::format("{:.{}f}", value, value >= 1 ? 0 : static_cast<int>(std::lround(-std::log10(value))));
}

class Svg {
 public:
  // Width and height in pixels.
  Svg(double width, double height) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\" "
        "font-size=\"12\">\n{2}",
        width, height, kStyle);
    add(fmt::format("<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n", width - 1,
                    height - 1));
  }

  void add(std::string_view element) { text_ += element; }
  void text(double x, double y, std::string_view what, std::string_view attributes = "class=\"text\"") {
    add(fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, escaped(what)));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    add(fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                    style));
  }
  void dot(double x, double y, double radius, std::string_view colour, std::string_view style = "") {
    const std::string of = style.empty() ? std::string() : fmt::format("class=\"{}\" ", style);
    add(fmt::format("<circle {}cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", of, x, y, radius, colour));
  }
  [[nodiscard]] std::string finish() && { return std::move(text_) + "</svg>\n"; }

 private:
  static constexpr const char* kStyle = R"(<style>
  .card { fill: #ffffff; stroke: #d0d7de } .text { fill: #1f2328 } .faint { fill: #656d76 }
  .grid { stroke: #d8dee4; stroke-width: 1 } .roof { stroke: #57606a; stroke-width: 2.5; fill: none }
  .leader { stroke: #8c959f; stroke-width: 1 } .dot { stroke: #ffffff; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #30363d } .text { fill: #e6edf3 } .faint { fill: #8d96a0 }
    .grid { stroke: #21262d } .roof { stroke: #8d96a0 } .dot { stroke: #0d1117 }
  }
</style>
)";

  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c == '&')
        out += "&amp;";
      else if (c == '<')
        out += "&lt;";
      else if (c == '>')
        out += "&gt;";
      else if (static_cast<unsigned char>(c) < 0x20)
        out += ' ';
      else
        out += c;
    }
    return out;
  }

  std::string text_;
};

}  // namespace tessera::tool
