// An automaton that reads JSON numbers and accepts those within given bounds. Digit by digit, it compares the number with the digits of
// each bound, and updates the remainder for multipleOf. So it is exact for decimals of any length, and ranges need not be expanded into
// patterns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::grammar {

// A decimal number without exponent, as digits before and after the point. Zeros at the front and at the end are removed, so zero has no
// digits.
struct Decimal {
  bool negative = false;
  std::string whole, fraction;

  // Parses the text of a JSON number; nullopt if the number has more than kLongest digits when it is written without an exponent.
  static constexpr std::size_t kLongest = 1100;
  [[nodiscard]] static std::optional<Decimal> parse(std::string_view text);
  [[nodiscard]] bool zero() const noexcept { return whole.empty() && fraction.empty(); }
  [[nodiscard]] int compare(const Decimal& other) const noexcept;  // returns -1, 0 or 1
  bool operator==(const Decimal&) const noexcept = default;
};

struct NumberBound {
  Decimal value;
  bool exclusive = false;
  bool operator==(const NumberBound&) const noexcept = default;
};

// A demand that the number is a multiple of units * 10^-scale.
struct NumberStep {
  std::uint64_t units = 1;  // below 2^59, so that ten times a remainder fits into 64 bits
  std::uint32_t scale = 0;
  bool operator==(const NumberStep&) const noexcept = default;

  [[nodiscard]] static std::optional<NumberStep> of(const Decimal& value);
};

struct NumberSpec {
  bool integer = false;  // true: a fraction may have only zeros
  std::optional<NumberBound> low, high;
  std::optional<NumberStep> step;
  bool operator==(const NumberSpec&) const noexcept = default;

  [[nodiscard]] bool allows_exponent() const noexcept { return !integer && !step; }
  // Returns whether a number with an exponent may be written in any way (12.5e7). This is so if exponents are allowed and there is no
  // bound other than zero, because then only the sign must be compared. With other bounds, a number with an exponent must be 0, or have
  // exactly one digit before its point, which is not 0 (1.25e8).
  [[nodiscard]] bool reads_all_exponents() const noexcept {
    return allows_exponent() && (!low || low->value.zero()) && (!high || high->value.zero());
  }
};

struct NumberState {
  enum class Phase : std::uint8_t { start, minus, zero, whole, point, fraction, e, e_sign, exponent };
  Phase phase = Phase::start;
  bool negative = false, nonzero = false;
  std::int8_t low = 0, high = 0;  // how the digits so far compare with each bound's: -1 smaller, 0 equal so far, 1 larger
  std::uint16_t digits = 0;       // number of digits of the whole part, or of the fraction; not counted beyond the point where it matters
  std::uint64_t remainder = 0;
  // For numbers "d.ddd e n": how the digits so far compare with the bounds' digits (both without their powers of ten), and the exponent.
  bool single = false;  // true: there is one digit before the point, and it is not 0
  bool negative_exponent = false;
  std::int8_t scaled_low = 0, scaled_high = 0;
  std::uint16_t scaled_digits = 0, exponent = 0;
  bool operator==(const NumberState&) const noexcept = default;
};

[[nodiscard]] std::optional<NumberState> advance(const NumberSpec& spec, const NumberState& state, unsigned byte);
[[nodiscard]] bool may_end(const NumberSpec& spec, const NumberState& state) noexcept;

}  // namespace tessera::grammar
