#include "sizes.hpp"

#include <charconv>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "terminal_text.hpp"

namespace tessera::tool {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr Unit kUnits[] = {
    {"", 1},       {"b", 1},
    {"kb", 1000},  {"mb", 1000'000},  {"gb", 1000'000'000},  {"tb", 1000'000'000'000},
    {"kib", 1024}, {"mib", 1u << 20}, {"gib", 1u << 30},     {"tib", std::uint64_t{1} << 40},
};
// With at most this many digits, a fraction times the largest unit stays within 64 bits.
constexpr std::size_t kFractionDigits = 6;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Removes decimal digits from the front of `text`, and returns their value; nullopt if there are none or the value exceeds 64 bits.
std::optional<std::uint64_t> digits(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::uint64_t> times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

Error bad(std::string_view text, std::string_view expected) {
  return {ErrorCode::invalid_argument, fmt::format("'{}' is not {}", shown(text), expected)};
}

// Removes the digits after the point from `rest`, and returns them in units of 10^-kFractionDigits.
std::optional<std::uint64_t> fraction(std::string_view& rest) {
  const std::size_t before = rest.size();
  const auto value = digits(rest);
  const std::size_t n = before - rest.size();
  if (!value || n > kFractionDigits) return std::nullopt;
  std::uint64_t scaled = *value;
  for (std::size_t i = n; i < kFractionDigits; ++i) scaled *= 10;
  return scaled;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kExpected = "a size, such as 80GiB, 80GB, 512MiB or a number of bytes";
  std::string_view rest = text;
  const auto whole = digits(rest);
  if (!whole) return bad(text, kExpected);
  std::uint64_t millionths = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    const auto behind = fraction(rest);
    if (!behind) {
      return bad(text, fmt::format("{}, with at most {} digits behind the point", kExpected, kFractionDigits));
    }
    millionths = *behind;
  }
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  const std::string name = lower(rest);
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    const auto bytes = times(*whole, unit.bytes);
    std::uint64_t sum = 0;
    if (!bytes || __builtin_add_overflow(*bytes, millionths * unit.bytes / 1'000'000, &sum)) {
      return bad(text, "a size of at most 64 bits");
    }
    return sum;
  }
  if (name == "k" || name == "m" || name == "g" || name == "t") {
    const std::string number(text.substr(0, text.size() - rest.size()));
    return bad(text, fmt::format("clear: {}{}iB counts in 1024, {}{}B in 1000", number, rest, number, rest));
  }
  return bad(text, kExpected);
}

}  // namespace tessera::tool
