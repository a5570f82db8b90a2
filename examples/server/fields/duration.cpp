#include "fields/duration.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

namespace server {

std::optional<double> duration_of(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}};
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double seconds = 0.0;
  for (bool is_first = true; !text.empty(); is_first = false) {
    double number = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(number) || number < 0.0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty() && is_first) return is_negative ? -number : number;
    const std::size_t size = std::min(text.find_first_of("+-.0123456789"), text.size());
    const auto* unit = std::ranges::find(kUnits, text.substr(0, size), &std::pair<std::string_view, double>::first);
    if (unit == std::end(kUnits)) return std::nullopt;
    seconds += number * unit->second;
    text.remove_prefix(size);
  }
  return is_negative ? -seconds : seconds;
}

}  // namespace server
