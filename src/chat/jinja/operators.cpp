// Python's arithmetic operators, `in`, and slices.
#include <algorithm>
#include <cmath>

#include "chat/jinja/evaluator.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

TextOrigin both(const Value& a, const Value& b) {
  return a.origin() == TextOrigin::from_message || b.origin() == TextOrigin::from_message ? TextOrigin::from_message
                                                                                         : TextOrigin::from_template;
}

[[noreturn]] void overflow() { fail("an integer beyond 64 bits", ErrorCode::unsupported); }

std::string_view sign(ExprKind op) {
  switch (op) {
    case ExprKind::add: return "+";
    case ExprKind::subtract: return "-";
    case ExprKind::multiply: return "*";
    case ExprKind::divide: return "/";
    case ExprKind::floor_divide: return "//";
    case ExprKind::modulo: return "%";
    default: return "**";
  }
}

std::int64_t whole_power(Budget& budget, std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  for (; exponent > 0; --exponent) {
    budget.spend(1);
    if (__builtin_mul_overflow(result, base, &result)) overflow();
  }
  return result;
}

double floor_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0 ? (rest < 0) != (b < 0) : std::signbit(b) != std::signbit(rest)) rest = rest != 0 ? rest + b : std::copysign(0.0, b);
  return rest;
}

Value whole_arithmetic(Budget& budget, ExprKind op, std::int64_t a, std::int64_t b, TextOrigin origin) {
  std::int64_t result = 0;
  switch (op) {
    case ExprKind::add:
      if (__builtin_add_overflow(a, b, &result)) overflow();
      break;
    case ExprKind::subtract:
      if (__builtin_sub_overflow(a, b, &result)) overflow();
      break;
    case ExprKind::multiply:
      if (__builtin_mul_overflow(a, b, &result)) overflow();
      break;
    case ExprKind::divide:
      if (b == 0) fail("division by zero");
      return Value::floating(static_cast<double>(a) / static_cast<double>(b), origin);
    case ExprKind::floor_divide:
    case ExprKind::modulo: {
      if (b == 0) fail("division by zero");
      if (b == -1) {
        if (op == ExprKind::floor_divide && __builtin_sub_overflow(std::int64_t{0}, a, &result)) overflow();
        break;
      }
      const std::int64_t quotient = a / b, rest = a % b;
      const bool below = rest != 0 && (rest < 0) != (b < 0);
      result = op == ExprKind::floor_divide ? quotient - below : rest + (below ? b : 0);
      break;
    }
    default:
      if (b < 0) {
        if (a == 0) fail("zero to a negative power");
        return Value::floating(std::pow(static_cast<double>(a), static_cast<double>(b)), origin);
      }
      result = whole_power(budget, a, b);
  }
  return Value::integer(result, origin);
}

Value floating_arithmetic(ExprKind op, double a, double b, TextOrigin origin) {
  switch (op) {
    case ExprKind::add: return Value::floating(a + b, origin);
    case ExprKind::subtract: return Value::floating(a - b, origin);
    case ExprKind::multiply: return Value::floating(a * b, origin);
    case ExprKind::power:
      if (a == 0 && b < 0) fail("zero to a negative power");
      if (a < 0 && b != std::floor(b)) fail("a power that is not real", ErrorCode::unsupported);
      if (const double result = std::pow(a, b); !std::isinf(result) || std::isinf(a) || std::isinf(b)) {
        return Value::floating(result, origin);
      }
      fail("a power too large for a float");
    default: break;
  }
  if (b == 0) fail("division by zero");
  if (op == ExprKind::divide) return Value::floating(a / b, origin);
  const double rest = floor_modulo(a, b);
  if (op == ExprKind::modulo) return Value::floating(rest, origin);
  return Value::floating(std::round((a - rest) / b), origin);
}

// Returns value * times, where the value is a string or a list.
Value repeated(Budget& budget, const Value& value, std::int64_t times) {
  if (times < 0) times = 0;
  const std::size_t size = value.is(Kind::string) ? value.text().size() : value.items().size() * sizeof(Value);
  std::uint64_t total = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(times), &total)) total = ~0ull >> 1;
  budget.check(total);
  if (value.is(Kind::string)) {
    Builder out(budget);
    if (size == 0) times = 0;
    for (std::int64_t i = 0; i < times; ++i) out.add(value.text());
    return out.finish();
  }
  Values items;
  if (value.items().empty()) times = 0;
  items.reserve(value.items().size() * static_cast<std::size_t>(times));
  for (std::int64_t i = 0; i < times; ++i) items.insert(items.end(), value.items().begin(), value.items().end());
  return value.is(Kind::list) ? make_list(budget, std::move(items)) : make_tuple(budget, std::move(items));
}

}  // namespace

Value arithmetic(Budget& budget, ExprKind op, const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return whole_arithmetic(budget, op, a.whole(), b.whole(), both(a, b));
  if (a.is_number() && b.is_number()) return floating_arithmetic(op, a.number(), b.number(), both(a, b));
  if (op == ExprKind::add) {
    if (a.is(Kind::string) && b.is(Kind::string)) {
      Builder out(budget);
      out.add(a.text());
      out.add(b.text());
      return out.finish();
    }
    if (a.is_list() && a.kind() == b.kind()) {
      budget.check((a.items().size() + b.items().size()) * sizeof(Value));
      Values items = a.items();
      items.insert(items.end(), b.items().begin(), b.items().end());
      return a.is(Kind::list) ? make_list(budget, std::move(items)) : make_tuple(budget, std::move(items));
    }
  }
  if (op == ExprKind::multiply) {
    if ((a.is(Kind::string) || a.is_list()) && b.is_whole()) return repeated(budget, a, b.whole());
    if ((b.is(Kind::string) || b.is_list()) && a.is_whole()) return repeated(budget, b, a.whole());
  }
  if (a.is(Kind::undefined)) fail_undefined(a);
  if (b.is(Kind::undefined)) fail_undefined(b);
  if (a.is(Kind::big_integer) || b.is(Kind::big_integer)) overflow();
  fail(fmt::format("'{}' between a {} and a {}", sign(op), type_name(a), type_name(b)));
}

Value negated(Budget&, const Value& value) {
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (value.is(Kind::floating)) return Value::floating(-value.number(), value.origin());
  if (value.is(Kind::big_integer)) overflow();
  if (!value.is_whole()) fail(fmt::format("'-' before a {}", type_name(value)));
  std::int64_t result = 0;
  if (__builtin_sub_overflow(std::int64_t{0}, value.whole(), &result)) overflow();
  return Value::integer(result, value.origin());
}

bool contains(Budget& budget, const Value& container, const Value& value) {
  switch (container.kind()) {
    case Kind::string: {
      if (!value.is(Kind::string)) {
        fail(fmt::format("'in' looks for a string in a string, not for a {}", type_name(value)));
      }
      budget.spend_on(container.text().size() * (1 + std::min<std::size_t>(value.text().size(), 8) / 4));
      return container.bytes().find(value.bytes()) != std::string_view::npos;
    }
    case Kind::dict: return find_member(budget, container.as<Dict>(), value) != nullptr;
    case Kind::list:
    case Kind::tuple:
    case Kind::dict_view:
      for (const Value& item : container.items()) {
        if (equal(budget, item, value)) return true;
      }
      return false;
    case Kind::range: {
      const auto& range = container.as<Range>();
      if (!value.is_number() || range.size == 0) return false;
      const double place = (value.number() - static_cast<double>(range.start)) / static_cast<double>(range.step);
      return place >= 0 && place < static_cast<double>(range.size) && place == std::floor(place);
    }
    default:
      for (const Value& item : iterate(budget, container)) {
        if (equal(budget, item, value)) return true;
      }
      return false;
  }
}

Value sliced(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step) {
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (!value.is(Kind::string) && !value.is_list() && !value.is(Kind::range)) {
    fail(fmt::format("a {} cannot be sliced", type_name(value)));
  }
  const auto number = [](const Value& bound, std::int64_t absent) {
    if (bound.is(Kind::none)) return absent;
    if (bound.is_whole()) return bound.whole();
    fail(fmt::format("a slice's bound is a {}", type_name(bound)));
  };
  const std::int64_t stride = number(step, 1);
  if (stride == 0) fail("a slice's step is zero");
  const std::int64_t size = length(budget, value);
  // Limits a bound to the value's length, as CPython's PySlice_AdjustIndices does.
  const auto clamp = [&](std::int64_t bound) {
    if (bound < 0) bound = bound < -size ? -1 : bound + size;
    else if (bound > size) bound = size;
    return stride < 0 ? std::clamp<std::int64_t>(bound, -1, size - 1) : std::clamp<std::int64_t>(bound, 0, size);
  };
  const std::int64_t first = start.is(Kind::none) ? (stride < 0 ? size - 1 : 0) : clamp(number(start, 0));
  const std::int64_t last = stop.is(Kind::none) ? (stride < 0 ? -1 : size) : clamp(number(stop, 0));
  std::int64_t count = 0;
  if (stride > 0 && first < last) count = (last - first - 1) / stride + 1;
  if (stride < 0 && last < first) {
    const std::uint64_t width = static_cast<std::uint64_t>(first - last - 1);
    count = static_cast<std::int64_t>(width / (~static_cast<std::uint64_t>(stride) + 1)) + 1;
  }

  if (value.is(Kind::string)) {
    const Text& text = value.text();
    if (stride == 1) {
      const std::size_t begin = character_offset(text.bytes(), static_cast<std::size_t>(first));
      const std::size_t end = character_offset(text.bytes(), static_cast<std::size_t>(count), begin);
      budget.check(end - begin);
      return make_string(budget, text.slice(begin, end));
    }
    std::vector<std::size_t> starts;  // offset of each character
    budget.check(text.size() * sizeof(std::size_t));
    for (std::size_t at = 0; at < text.size(); at += character_size(text.bytes().substr(at))) starts.push_back(at);
    Builder out(budget);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t begin = starts[static_cast<std::size_t>(first + i * stride)];
      out.add(text, begin, begin + character_size(text.bytes().substr(begin)));
    }
    return out.finish();
  }
  if (value.is(Kind::range)) {
    const auto& range = value.as<Range>();
    return Value::object(Kind::range, std::make_shared<Range>(budget, range.start + (count > 0 ? first * range.step : 0),
                                                              range.step * (count > 1 ? stride : 1), count));
  }
  budget.check(static_cast<std::size_t>(count) * sizeof(Value));
  Values items;
  for (std::int64_t i = 0; i < count; ++i) items.push_back(value.items()[static_cast<std::size_t>(first + i * stride)]);
  return value.is(Kind::list) ? make_list(budget, std::move(items)) : make_tuple(budget, std::move(items));
}

}  // namespace tessera::jinja
