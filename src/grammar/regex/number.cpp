#include "grammar/regex/number.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tessera::grammar {

namespace {

using Phase = NumberState::Phase;

int sign(int value) noexcept { return (value > 0) - (value < 0); }

// Compares a whole part, of which n + 1 digits were read, with the whole part of a bound. `digit`: the last digit read (its index is n);
// `so_far`: the result for the n digits before it. Returns -1 (smaller), 0 (equal so far) or 1 (larger). A whole part with more digits
// than the bound's is larger.
std::int8_t compare_whole(const std::optional<NumberBound>& bound, std::int8_t so_far, std::size_t n, int digit) {
  if (!bound) return 0;
  if (n >= bound->value.whole.size()) return 1;
  return so_far != 0 ? so_far : static_cast<std::int8_t>(sign(digit - bound->value.whole[n]));
}

// Compares a complete whole part of n digits with the whole part of a bound, and returns -1, 0 or 1. `so_far`: the result of compare_whole()
// for these digits. A whole part with fewer digits than the bound's is smaller.
std::int8_t whole_done(const std::optional<NumberBound>& bound, std::int8_t so_far, std::size_t n) {
  return bound && n < bound->value.whole.size() ? std::int8_t{-1} : so_far;
}

std::int8_t compare_fraction(const std::optional<NumberBound>& bound, std::int8_t so_far, std::size_t n, int digit) {
  if (!bound || so_far != 0) return so_far;
  const int other = n < bound->value.fraction.size() ? bound->value.fraction[n] : '0';
  return static_cast<std::int8_t>(sign(digit - other));
}

std::size_t whole_digits(const std::optional<NumberBound>& bound) { return bound ? bound->value.whole.size() : 0; }
std::size_t fraction_digits(const std::optional<NumberBound>& bound) { return bound ? bound->value.fraction.size() : 0; }

// The functions below take a bound as in scientific notation, to compare it with numbers that have an exponent. The digits of a bound go
// from its first digit that is not 0 to its last digit that is not 0 (1200 has two digits: 1 and 2). The scale of a bound is the power of
// ten of its first digit (3 for 1200).
std::size_t leading_zeros(const Decimal& d) { return d.whole.empty() ? d.fraction.find_first_not_of('0') : 0; }
std::size_t scaled_size(const Decimal& d) {
  if (d.zero()) return 0;
  if (d.fraction.empty()) return d.whole.find_last_not_of('0') + 1;
  return d.whole.size() + d.fraction.size() - leading_zeros(d);
}
char scaled_digit(const Decimal& d, std::size_t i) {
  if (i < d.whole.size()) return d.whole[i];
  const std::size_t at = i - d.whole.size() + leading_zeros(d);
  return at < d.fraction.size() ? d.fraction[at] : '0';
}
long scale_of(const Decimal& d) {
  return d.whole.empty() ? -static_cast<long>(leading_zeros(d)) - 1 : static_cast<long>(d.whole.size()) - 1;
}

long largest_scale(const NumberSpec& spec) {
  long out = 0;
  for (const auto* bound : {&spec.low, &spec.high}) {
    if (*bound && !(*bound)->value.zero()) out = std::max(out, std::abs(scale_of((*bound)->value)));
  }
  return out;
}

// Compares one more digit with the bounds' digits. The number has the form "d.ddd", with one digit before the point.
void scale_digit(const NumberSpec& spec, NumberState& state, int digit) {
  const auto compare = [&](const std::optional<NumberBound>& bound, std::int8_t& so_far) {
    if (!bound || bound->value.zero() || so_far != 0) return;
    so_far = static_cast<std::int8_t>(sign(digit - scaled_digit(bound->value, state.scaled_digits)));
  };
  compare(spec.low, state.scaled_low);
  compare(spec.high, state.scaled_high);
  const std::size_t longest = std::max(spec.low ? scaled_size(spec.low->value) : 0, spec.high ? scaled_size(spec.high->value) : 0);
  if (state.scaled_digits < longest) ++state.scaled_digits;
}

// Returns the state after an "e"; nullopt if no exponent may follow. The digits before the "e" need not be kept: which exponents may
// follow depends only on the result of comparing these digits with the digits of the bounds.
std::optional<NumberState> to_exponent(const NumberSpec& spec, const NumberState& state) {
  if (!spec.allows_exponent()) return std::nullopt;
  if (state.nonzero && !state.single && !spec.reads_all_exponents()) return std::nullopt;
  NumberState next;
  next.phase = Phase::e;
  next.negative = state.negative;
  next.nonzero = state.nonzero;
  const auto rest = [&](const std::optional<NumberBound>& bound, std::int8_t so_far) {
    const bool shorter = bound && so_far == 0 && state.scaled_digits < scaled_size(bound->value);
    return shorter ? std::int8_t{-1} : so_far;
  };
  if (!spec.reads_all_exponents()) {
    next.low = rest(spec.low, state.scaled_low);
    next.high = rest(spec.high, state.scaled_high);
  }
  return next;
}

std::optional<NumberState> fraction_digit(const NumberSpec& spec, NumberState state, int digit) {
  if (spec.integer && digit != '0') return std::nullopt;
  state.low = compare_fraction(spec.low, state.low, state.digits, digit);
  state.high = compare_fraction(spec.high, state.high, state.digits, digit);
  std::size_t longest = std::max(fraction_digits(spec.low), fraction_digits(spec.high));
  if (spec.step) {
    if (state.digits < spec.step->scale) {
      state.remainder = (state.remainder * 10 + static_cast<unsigned>(digit - '0')) % spec.step->units;
    } else if (digit != '0') {
      return std::nullopt;
    }
    longest = std::max<std::size_t>(longest, spec.step->scale);
  }
  if (state.single) scale_digit(spec, state, digit);
  state.phase = Phase::fraction;
  state.nonzero = state.nonzero || digit != '0';
  if (state.digits < longest) ++state.digits;
  return state;
}

NumberState whole_digit(const NumberSpec& spec, NumberState state, int digit) {
  const bool first = state.phase != Phase::whole;
  state.single = first && spec.allows_exponent() && !spec.reads_all_exponents();
  state.scaled_low = state.scaled_high = 0;
  state.scaled_digits = 0;
  if (state.single) scale_digit(spec, state, digit);
  state.low = compare_whole(spec.low, state.low, state.digits, digit);
  state.high = compare_whole(spec.high, state.high, state.digits, digit);
  const std::size_t longest = std::max(whole_digits(spec.low), whole_digits(spec.high)) + 1;
  if (state.digits < longest) ++state.digits;
  if (spec.step) state.remainder = (state.remainder * 10 + static_cast<unsigned>(digit - '0')) % spec.step->units;
  state.phase = Phase::whole;
  state.nonzero = true;  // the first digit of a longer whole part is never 0
  return state;
}

NumberState to_point(const NumberSpec& spec, NumberState state) {
  state.low = whole_done(spec.low, state.low, state.digits);
  state.high = whole_done(spec.high, state.high, state.digits);
  state.digits = 0;
  state.phase = Phase::point;
  return state;
}

// Compares a number with a bound: returns -1, 0 or 1. `magnitude`: the result (-1, 0 or 1) of comparing their absolute values.
int against(const NumberBound& bound, bool negative, int magnitude) {
  if (negative != bound.value.negative) return negative ? -1 : 1;
  return negative ? -magnitude : magnitude;
}

// Returns whether the number is out of bounds whatever digits follow: more digits only make its magnitude larger. If an exponent may
// follow, returns false, because an exponent can also make the magnitude smaller.
bool is_lost(const NumberSpec& spec, const NumberState& state) {
  if (spec.allows_exponent() || !state.nonzero) return false;
  const auto& bound = state.negative ? spec.low : spec.high;
  if (!bound) return false;
  if (bound->value.negative != state.negative) return true;  // the signs differ, or the bound is zero
  if (state.phase != Phase::whole) return (state.negative ? state.low : state.high) > 0;
  const std::size_t longest = bound->value.whole.size();
  return state.digits > longest || (state.digits == longest && (state.negative ? state.low : state.high) > 0);
}

}  // namespace

std::optional<Decimal> Decimal::parse(std::string_view text) {
  Decimal out;
  if (text.starts_with('-')) {
    out.negative = true;
    text.remove_prefix(1);
  }
  long exponent = 0;
  if (const auto e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view power = text.substr(e + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    text = text.substr(0, e);
    if (error != std::errc()) {
      if (text.find_first_of("123456789") != std::string_view::npos) return std::nullopt;
      exponent = 0;
    }
  }
  const auto point = text.find('.');
  std::string digits(text.substr(0, point));
  long whole = static_cast<long>(digits.size());
  if (point != std::string_view::npos) digits += text.substr(point + 1);
  const auto first = digits.find_first_not_of('0');
  if (first == std::string::npos) return Decimal{};
  digits.erase(0, first);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (exponent > 100'000 || exponent < -100'000) return std::nullopt;
  whole += exponent - static_cast<long>(first);
  const long size = static_cast<long>(digits.size());
  if (whole > static_cast<long>(kLongest) || size - whole > static_cast<long>(kLongest) ||
      digits.size() > kLongest) {
    return std::nullopt;
  }
  if (whole <= 0) {
    out.fraction = std::string(static_cast<std::size_t>(-whole), '0') + digits;
  } else if (whole >= size) {
    out.whole = digits + std::string(static_cast<std::size_t>(whole - size), '0');
  } else {
    out.whole = digits.substr(0, static_cast<std::size_t>(whole));
    out.fraction = digits.substr(static_cast<std::size_t>(whole));
  }
  return out;
}

int Decimal::compare(const Decimal& other) const noexcept {
  if (negative != other.negative) return negative ? -1 : 1;
  int magnitude = 0;
  if (whole.size() != other.whole.size()) {
    magnitude = whole.size() < other.whole.size() ? -1 : 1;
  } else {
    magnitude = sign(whole.compare(other.whole));
    if (magnitude == 0) magnitude = sign(fraction.compare(other.fraction));
  }
  return negative ? -magnitude : magnitude;
}

std::optional<NumberStep> NumberStep::of(const Decimal& value) {
  NumberStep step;
  const std::string digits = value.whole + value.fraction;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step.units);
  step.scale = static_cast<std::uint32_t>(value.fraction.size());
  if (digits.empty() || error != std::errc() || step.units == 0 || step.units >> 59 != 0 || step.scale > 60) return std::nullopt;
  return step;
}

static std::optional<NumberState> step(const NumberSpec& spec, const NumberState& state, unsigned byte) {
  const bool digit = byte >= '0' && byte <= '9';
  NumberState next = state;
  switch (state.phase) {
    case Phase::start:
      if (byte == '-') {
        next.phase = Phase::minus;
        next.negative = true;
        return next;
      }
      [[fallthrough]];
    case Phase::minus:
      if (!digit) return std::nullopt;
      if (byte != '0') return whole_digit(spec, next, static_cast<int>(byte));
      next.phase = Phase::zero;
      return next;
    case Phase::whole:
      if (digit) return whole_digit(spec, next, static_cast<int>(byte));
      [[fallthrough]];
    case Phase::zero:
      if (byte == '.') return to_point(spec, next);
      break;
    case Phase::point:
      return digit ? fraction_digit(spec, next, static_cast<int>(byte)) : std::nullopt;
    case Phase::fraction:
      if (digit) return fraction_digit(spec, next, static_cast<int>(byte));
      break;
    case Phase::e:
      if (byte == '+' || byte == '-') {
        next.phase = Phase::e_sign;
        next.negative_exponent = byte == '-';
        return next;
      }
      [[fallthrough]];
    case Phase::e_sign:
    case Phase::exponent:
      if (!digit) return std::nullopt;
      next.phase = Phase::exponent;
      if (!spec.reads_all_exponents()) {
        const long value = next.exponent * 10L + static_cast<long>(byte - '0');
        // All exponents beyond the largest scale compare alike.
        next.exponent = static_cast<std::uint16_t>(std::min(value, largest_scale(spec) + 1));
      }
      return next;
  }
  return byte == 'e' || byte == 'E' ? to_exponent(spec, state) : std::nullopt;
}

std::optional<NumberState> advance(const NumberSpec& spec, const NumberState& state, unsigned byte) {
  const auto next = step(spec, state, byte);
  return next && is_lost(spec, *next) ? std::nullopt : next;
}

bool may_end(const NumberSpec& spec, const NumberState& state) noexcept {
  const bool whole = state.phase == Phase::whole || state.phase == Phase::zero;
  if (!whole && state.phase != Phase::fraction && state.phase != Phase::exponent) return false;
  const auto magnitude = [&](const NumberBound& bound, int so_far) {
    if (state.phase == Phase::exponent) {
      if (!state.nonzero || bound.value.zero()) return state.nonzero ? 1 : bound.value.zero() ? 0 : -1;
      const long exponent = state.negative_exponent ? -long{state.exponent} : long{state.exponent};
      const long scale = scale_of(bound.value);
      return exponent != scale ? (exponent < scale ? -1 : 1) : so_far;
    }
    if (whole && state.digits < bound.value.whole.size()) return -1;
    const std::size_t fraction = whole ? 0 : state.digits;
    return so_far == 0 && fraction < bound.value.fraction.size() ? -1 : so_far;
  };
  const bool negative = state.negative && state.nonzero;
  if (spec.low) {
    const int c = against(*spec.low, negative, magnitude(*spec.low, state.low));
    if (c < 0 || (c == 0 && spec.low->exclusive)) return false;
  }
  if (spec.high) {
    const int c = against(*spec.high, negative, magnitude(*spec.high, state.high));
    if (c > 0 || (c == 0 && spec.high->exclusive)) return false;
  }
  if (spec.step) {
    std::uint64_t rest = state.remainder;
    for (std::size_t n = whole ? 0 : state.digits; n < spec.step->scale; ++n) rest = rest * 10 % spec.step->units;
    if (rest != 0) return false;
  }
  return true;
}

}  // namespace tessera::grammar
