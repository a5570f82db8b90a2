// Numbers as the crate serde_json reads them, with which the crate `tokenizers` reads the scores of a tokenizer.json.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace tessera::detail {

// Returns the value of a number of JSON, with the same bits as serde_json: the digits as an integer, multiplied or divided by a power of
// ten. The result often differs from the nearest double by one unit in the last place. Such a difference matters in the scores of tokens:
// if two ways to cut a word have the same sum of scores, the difference decides which way is taken.
[[nodiscard]] inline double serde_number(std::string_view written) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const bool negative = written.starts_with('-');
  std::uint64_t digits = 0;
  std::int64_t exponent = 0;
  bool full = false, behind_point = false;  // full: 64 bits hold no further digit, and the rest is dropped
  std::size_t i = negative ? 1 : 0;
  for (; i < written.size() && written[i] != 'e' && written[i] != 'E'; ++i) {
    if (written[i] == '.') {
      behind_point = true;
      full = false;
      continue;
    }
    const auto digit = static_cast<std::uint64_t>(written[i] - '0');
    full = full || digits > (kMost - digit) / 10;
    if (!full) {
      digits = digits * 10 + digit;
      exponent -= behind_point ? 1 : 0;
    } else if (!behind_point) {
      ++exponent;
    }
  }
  if (i < written.size()) {
    const bool down = written[i + 1] == '-';
    std::int64_t stated = 0;
    for (i += written[i + 1] == '-' || written[i + 1] == '+' ? 2 : 1; i < written.size(); ++i) {
      if (stated < 100'000) stated = stated * 10 + (written[i] - '0');
    }
    exponent += down ? -stated : stated;
  }
  double value = static_cast<double>(digits);
  // The powers are read as texts, because std::pow may not give the nearest doubles.
  const auto power = [](std::int64_t p) {
    char text[8] = "1e";
    const char* const end = std::to_chars(text + 2, text + sizeof text, p).ptr;
    double read = 0;
    std::from_chars(text, end, read);
    return read;
  };
  for (; exponent < -308 && value != 0; exponent += 308) value /= power(308);
  if (exponent > 308) {
    value = value == 0 ? 0 : HUGE_VAL;
  } else if (exponent >= 0) {
    value *= power(exponent);
  } else if (exponent >= -308) {
    value /= power(-exponent);
  }
  return negative ? -value : value;
}

}  // namespace tessera::detail
