#include "json/python_float.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace tessera::detail {

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific);
  std::string text(digits, end);
  const std::size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  if (exponent >= -4 && exponent < 16) {
    const auto [stop, failed] = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed);
    text.assign(digits, stop);
    if (text.find('.') == text.npos) text += ".0";
    return text;
  }
  return fmt::format("{}e{}{:02}", text.substr(0, e), exponent < 0 ? '-' : '+', std::abs(exponent));
}

}  // namespace tessera::detail
