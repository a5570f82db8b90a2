// Filters for single values: numbers, and defaults for missing values.
#include <array>
#include <charconv>
#include <cmath>

#include "chat/jinja/library/filters.hpp"
#include "chat/jinja/strings.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

Value with_default(Evaluator& e, const Value& value, const Args& args) {
  const auto [fallback, boolean] = args.bind<2>("default", {"default_value", "boolean"});
  const bool use = value.is(Kind::undefined) || (truth(boolean) && !truth(value));
  if (!use) return value;
  return args.positional.empty() && args.keyword.empty() ? e.string("") : fallback;
}

Value absolute(Evaluator& e, const Value& value, const Args&) {
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (!value.is_number()) fail(fmt::format("abs() of a {}", type_name(value)));
  if (value.is(Kind::boolean)) return Value::integer(value.whole());
  return value.number() < 0 || std::signbit(value.number()) ? negated(e.budget(), value) : value;
}

// Prepares a text for conversion to a number as Python's int() and float() do: removes white space around it, and single underscores
// between digits ("1_000"). nullopt: an underscore is anywhere else, so the text is no number.
std::optional<std::string> number_text(std::string_view text) {
  const Extent inside = stripped(text, nullptr, Ends::both);
  text = text.substr(inside.begin, inside.end - inside.begin);
  std::string out;
  const auto digit = [&](std::size_t i) { return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') out += text[i];
    else if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
  }
  if (out.starts_with('+')) out.erase(0, 1);
  if (out.empty() || out[0] == '+') return std::nullopt;
  return out;
}

std::optional<std::int64_t> to_integer(std::string_view text, int base) {
  auto digits = number_text(text);
  if (!digits) return std::nullopt;
  const std::size_t sign = digits->starts_with('-') ? 1 : 0;
  const auto prefixed = [&](char letter) {
    return digits->size() > sign + 2 && (*digits)[sign] == '0' && ((*digits)[sign + 1] | 0x20) == letter;
  };
  if ((base == 16 && prefixed('x')) || (base == 8 && prefixed('o')) || (base == 2 && prefixed('b'))) digits->erase(sign, 2);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), number, base);
  if (error == std::errc::result_out_of_range) fail("an integer beyond 64 bits", ErrorCode::unsupported);
  if (error != std::errc() || end != digits->data() + digits->size()) return std::nullopt;
  return number;
}

std::optional<double> to_floating(std::string_view text) {
  const auto digits = number_text(text);
  if (!digits) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), number);
  if (end != digits->data() + digits->size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const bool small = digits->find("e-") != std::string::npos || digits->find("E-") != std::string::npos;
    return std::copysign(small ? 0.0 : HUGE_VAL, digits->starts_with('-') ? -1.0 : 1.0);
  }
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> truncated(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (std::fabs(number) >= 9.2e18) fail("an integer beyond 64 bits", ErrorCode::unsupported);
  return static_cast<std::int64_t>(number);
}

Value integer(Evaluator&, const Value& value, const Args& args) {
  const auto [fallback, base] = args.bind<2>("int", {"default", "base"});
  const Value absent = fallback.is(Kind::undefined) ? Value::integer(0) : fallback;
  const std::int64_t radix = base.is(Kind::undefined) ? 10 : need_whole("int", base);
  if (radix < 2 || radix > 36) fail("int() with a base that is not 2 to 36", ErrorCode::unsupported);
  std::optional<std::int64_t> number;
  TextOrigin origin = value.origin();
  if (value.is(Kind::string)) {
    number = to_integer(value.bytes(), static_cast<int>(radix));
    if (!number) {
      if (const auto floating = to_floating(value.bytes())) number = truncated(*floating);
    }
    origin = value.text().origin();
  } else if (value.is_whole()) {
    number = value.whole();
  } else if (value.is(Kind::big_integer)) {
    return value;
  } else if (value.is(Kind::floating)) {
    if (std::isinf(value.number())) fail("int() of infinity");
    number = truncated(value.number());
  } else if (value.is(Kind::undefined)) {
    fail_undefined(value);
  }
  return number ? Value::integer(*number, origin) : absent;
}

Value floating(Evaluator&, const Value& value, const Args& args) {
  const auto [fallback] = args.bind<1>("float", {"default"});
  const Value absent = fallback.is(Kind::undefined) ? Value::floating(0) : fallback;
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (value.is_number()) return Value::floating(value.number(), value.origin());
  if (!value.is(Kind::string)) return absent;
  const auto number = to_floating(value.bytes());
  return number ? Value::floating(*number, value.text().origin()) : absent;
}

Value rounded(Evaluator&, const Value& value, const Args& args) {
  const auto [precision, method] = args.bind<2>("round", {"precision", "method"});
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (!value.is_number()) fail(fmt::format("round() of a {}", type_name(value)));
  const std::int64_t digits = precision.is(Kind::undefined) ? 0 : need_whole("round", precision);
  const std::string_view how = method.is(Kind::undefined) ? "common" : need_string("round", method).bytes();
  if (how != "common" && how != "ceil" && how != "floor") fail("round() knows common, ceil and floor");
  if (digits < 0 || digits > 300) fail("round() to digits before the point is not supported", ErrorCode::unsupported);
  if (how == "common") {
    if (value.is_whole()) return Value::integer(value.whole(), value.origin());
    if (!std::isfinite(value.number())) return value;
    const std::string text = fmt::format("{:.{}f}", value.number(), static_cast<int>(digits));
    double number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return Value::floating(number, value.origin());
  }
  const double power = std::pow(10.0, static_cast<double>(digits));
  const double scaled = value.number() * power;
  return Value::floating((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / power, value.origin());
}

Value size(Evaluator& e, const Value& value, const Args&) { return Value::integer(length(e.budget(), value)); }

constexpr Filter kValueFilters[] = {
    {"default", with_default}, {"d", with_default}, {"abs", absolute}, {"int", integer}, {"float", floating},
    {"round", rounded}, {"length", size}, {"count", size},
};

}  // namespace

std::span<const Filter> value_filters() noexcept { return kValueFilters; }

}  // namespace tessera::jinja
