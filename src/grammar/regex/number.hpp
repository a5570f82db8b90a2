// JSON numbers within bounds, as an automaton over their digits: exact for decimals of any length, without expanding a range into patterns.
// The automaton compares the digits with those of each bound as they come, and keeps the remainder by the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::grammar {

// A decimal number without exponent: (-) whole . fraction, without zeros in front or behind. Zero has no digits.
struct Decimal {
  bool negative = false;
  std::string whole, fraction;

  // Reads a JSON number's text; nullopt if its exponent makes it longer than kLongest digits.
  static constexpr std::size_t kLongest = 1100;
  [[nodiscard]] static std::optional<Decimal> parse(std::string_view text);
  [[nodiscard]] bool zero() const noexcept { return whole.empty() && fraction.empty(); }
  [[nodiscard]] int compare(const Decimal& other) const noexcept;  // -1, 0, 1
  bool operator==(const Decimal&) const noexcept = default;
};

struct NumberBound {
  Decimal value;
  bool exclusive = false;
  bool operator==(const NumberBound&) const noexcept = default;
};

// A multiple of units * 10^-scale.
struct NumberStep {
  std::uint64_t units = 1;  // below 2^59: a remainder times ten fits in 64 bits
  std::uint32_t scale = 0;
  bool operator==(const NumberStep&) const noexcept = default;

  [[nodiscard]] static std::optional<NumberStep> of(const Decimal& value);
};

struct NumberSpec {
  bool integer = false;  // no fraction other than zeros
  std::optional<NumberBound> low, high;
  std::optional<NumberStep> step;
  bool operator==(const NumberSpec&) const noexcept = default;

  [[nodiscard]] bool allows_exponent() const noexcept { return !integer && !step; }
  // Returns whether numbers with any exponent can be compared with the bounds, which is so if no bound but zero is set. With another bound
  // only numbers of the form "d.ddd e n", with one digit before the point, can be compared.
  [[nodiscard]] bool reads_all_exponents() const noexcept {
    return allows_exponent() && (!low || low->value.zero()) && (!high || high->value.zero());
  }
};

struct NumberState {
  enum class Phase : std::uint8_t { start, minus, zero, whole, point, fraction, e, e_sign, exponent };
  Phase phase = Phase::start;
  bool negative = false, nonzero = false;
  std::int8_t low = 0, high = 0;  // the digits so far compared with the bound's: -1, 0, 1
  std::uint16_t digits = 0;       // digits of the whole part or of the fraction, counted as far as they matter
  std::uint64_t remainder = 0;
  // The digits so far, read as those of a number "d.ddd e n", and compared with the bounds' digits; then the exponent.
  bool single = false;  // true: one digit, not zero, stands before the point
  bool negative_exponent = false;
  std::int8_t scaled_low = 0, scaled_high = 0;
  std::uint16_t scaled_digits = 0, exponent = 0;
  bool operator==(const NumberState&) const noexcept = default;
};

[[nodiscard]] std::optional<NumberState> advance(const NumberSpec& spec, const NumberState& state, unsigned byte);
[[nodiscard]] bool may_end(const NumberSpec& spec, const NumberState& state) noexcept;

}  // namespace tessera::grammar
