// Python's two ways to format text: "..." % values, and "...".format(values).
#include <charconv>
#include <cmath>

#include "chat/jinja/strings.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"
#include "json/python_float.hpp"

namespace tessera::jinja {
namespace {

constexpr std::int64_t kWidest = 10'000;

struct Spec {
  char fill = ' ';
  char align = 0;      // one of '<', '>', '^', '='; 0: not given
  char sign = '-';     // one of '-', '+', ' '
  bool alternate = false, grouped = false;
  std::int64_t width = 0, precision = -1;
  char type = 0;
};

std::int64_t read_number(std::string_view text, std::size_t& at) {
  std::int64_t number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    number = number * 10 + (text[at] - '0');
    if (number > kWidest) fail("a format wider than 10000", ErrorCode::over_budget);
  }
  return number;
}

std::string with_sign(const Spec& spec, bool negative, std::string digits) {
  return fmt::format("{}{}", negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "", digits);
}

std::string grouped(std::string digits) {
  const std::size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (std::size_t at = end; at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

// Returns the number as text, without padding.
std::string number_text(const Spec& spec, const Value& value, char type) {
  if (type == 'd' || type == 'x' || type == 'X' || type == 'o' || type == 'b') {
    const bool negative = value.whole() < 0;
    const auto magnitude = negative ? ~static_cast<std::uint64_t>(value.whole()) + 1 : static_cast<std::uint64_t>(value.whole());
    std::string digits = type == 'd'   ? fmt::format("{}", magnitude)
                         : type == 'x' ? fmt::format("{:x}", magnitude)
                         : type == 'X' ? fmt::format("{:X}", magnitude)
                         : type == 'o' ? fmt::format("{:o}", magnitude)
                                       : fmt::format("{:b}", magnitude);
    if (spec.alternate && type != 'd') digits = fmt::format("0{}{}", type, digits);
    return with_sign(spec, negative, spec.grouped ? grouped(digits) : digits);
  }
  const double number = value.number();
  const double magnitude = std::fabs(number);
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  std::string digits;
  if (std::isnan(number) || std::isinf(number)) {
    digits = std::isnan(number) ? "nan" : "inf";
  } else if (type == 'f' || type == 'F') {
    digits = fmt::format("{:.{}f}", magnitude, precision);
  } else if (type == '%') {
    digits = fmt::format("{:.{}f}%", magnitude * 100, precision);
  } else if (type == 'e' || type == 'E') {
    digits = type == 'e' ? fmt::format("{:.{}e}", magnitude, precision) : fmt::format("{:.{}E}", magnitude, precision);
  } else {
    digits = fmt::format("{:.{}g}", magnitude, precision == 0 ? 1 : precision);
  }
  return with_sign(spec, std::signbit(number) && !std::isnan(number), spec.grouped ? grouped(digits) : digits);
}

void add_padded(Builder& out, const Text& text, const Spec& spec, char align) {
  const auto missing = std::max<std::int64_t>(0, spec.width - static_cast<std::int64_t>(count_characters(text.bytes())));
  const std::string_view bytes = text.bytes();
  std::int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  if (align == '=') {
    const std::size_t sign = bytes.starts_with('-') || bytes.starts_with('+') || bytes.starts_with(' ') ? 1 : 0;
    out.add(text, 0, sign);
    out.add(std::string(static_cast<std::size_t>(missing), spec.fill));
    return out.add(text, sign, text.size());
  }
  out.add(std::string(static_cast<std::size_t>(left), spec.fill));
  out.add(text);
  out.add(std::string(static_cast<std::size_t>(missing - left), spec.fill));
}

// Adds the text, cut to the precision and then padded.
void add_text(Builder& out, const Text& text, const Spec& spec, char align) {
  if (spec.precision < 0) return add_padded(out, text, spec, align);
  const std::size_t end = character_offset(text.bytes(), static_cast<std::size_t>(spec.precision));
  add_padded(out, text.slice(0, end), spec, align);
}

// --- "..." % values

class Percent {
 public:
  Percent(Evaluator& e, const Text& format, const Value& values) : e_(e), format_(format), values_(values), out_(e.budget()) {}

  Value run() {
    const std::string_view text = format_.bytes();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t next = std::min(text.find('%', at), text.size());
      out_.add(format_, at, next);
      at = next;
      if (at < text.size()) at = directive(text, at + 1);
    }
    const bool has_more = values_.is(Kind::tuple) ? used_ < values_.items().size()
                                                  : used_ == 0 && !values_.is(Kind::dict) && !values_.is(Kind::list);
    if (has_more) fail("'%' has more values than places");
    return out_.finish();
  }

 private:
  std::size_t directive(std::string_view text, std::size_t at) {
    Spec spec;
    const Value* named = nullptr;
    if (at < text.size() && text[at] == '(') {
      const std::size_t end = text.find(')', at);
      if (end == text.npos || !values_.is(Kind::dict)) fail("'%(name)' needs a dict");
      named = find_member(e_.budget(), values_.as<Dict>(), text.substr(at + 1, end - at - 1));
      if (named == nullptr) fail("'%(name)' names no member");
      used_ = 1;
      at = end + 1;
    }
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '-') spec.align = '<';
      else if (c == '+') spec.sign = '+';
      else if (c == ' ') spec.sign = spec.sign == '+' ? '+' : ' ';
      else if (c == '0') spec.fill = '0';
      else if (c == '#') spec.alternate = true;
      else break;
    }
    spec.width = read_number(text, at);
    if (at < text.size() && text[at] == '.') spec.precision = read_number(text, ++at);
    if (at >= text.size()) fail("'%' at the end of a format");
    const char type = text[at];
    if (type == '%') {
      out_.add("%");
      return at + 1;
    }
    put(spec, type, named != nullptr ? *named : next());
    return at + 1;
  }

  const Value& next() {
    if (values_.is(Kind::tuple)) {
      if (used_ >= values_.items().size()) fail("'%' has fewer values than places");
      return values_.items()[used_++];
    }
    if (used_++ > 0) fail("'%' has fewer values than places");
    return values_;
  }

  void put(Spec spec, char type, const Value& value) {
    if (type == 's' || type == 'r') {
      Builder text(e_.budget());
      if (type == 's') append_string(e_, text, value);
      else append_repr(e_, text, value);
      spec.fill = ' ';
      return add_text(out_, text.text(), spec, spec.align == '<' ? '<' : '>');
    }
    const bool whole = type == 'd' || type == 'i' || type == 'u' || type == 'x' || type == 'X' || type == 'o';
    if (!whole && type != 'f' && type != 'F' && type != 'e' && type != 'E' && type != 'g') {
      fail(fmt::format("'%{}' is not supported", type), ErrorCode::unsupported);
    }
    if (!value.is_number()) fail(fmt::format("'%{}' needs a number, not a {}", type, type_name(value)));
    Value number = value;
    if (whole && value.is(Kind::floating)) {
      if (type == 'x' || type == 'X' || type == 'o' || !(std::fabs(value.number()) < 9e18)) fail("'%' needs an integer");
      number = Value::integer(static_cast<std::int64_t>(value.number()), value.origin());
    }
    std::string digits = number_text(spec, number, type == 'i' || type == 'u' ? 'd' : type);
    if (whole && spec.precision > 0) {
      const std::size_t sign = digits[0] == '-' || digits[0] == '+' || digits[0] == ' ' ? 1 : 0;
      while (digits.size() - sign < static_cast<std::size_t>(spec.precision)) digits.insert(sign, "0");
    }
    if (spec.align == '<') spec.fill = ' ';
    add_padded(out_, Text(digits, value.origin()), spec, spec.align == '<' ? '<' : spec.fill == '0' ? '=' : '>');
  }

  Evaluator& e_;
  const Text& format_;
  const Value& values_;
  Builder out_;
  std::size_t used_ = 0;
};

// --- "...".format(values)

Spec read_spec(std::string_view text) {
  Spec spec;
  std::size_t at = 0;
  const auto is_align = [&](std::size_t i) { return i < text.size() && std::string_view("<>^=").find(text[i]) != text.npos; };
  if (is_align(1)) {
    spec.fill = text[0];
    spec.align = text[1];
    at = 2;
  } else if (is_align(0)) {
    spec.align = text[at++];
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) spec.sign = text[at++];
  if (at < text.size() && text[at] == '#') spec.alternate = (++at, true);
  if (at < text.size() && text[at] == '0') {
    ++at;
    spec.fill = '0';
    if (spec.align == 0) spec.align = '=';
  }
  spec.width = read_number(text, at);
  if (at < text.size() && text[at] == ',') spec.grouped = (++at, true);
  if (at < text.size() && text[at] == '.') spec.precision = read_number(text, ++at);
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) fail("a format that is not known", ErrorCode::unsupported);
  return spec;
}

void put_braced(Evaluator& e, Builder& out, const Value& value, std::string_view spec_text, char conversion) {
  const Spec spec = read_spec(spec_text);
  const bool is_text = conversion != 0 || !value.is_number() || (value.is(Kind::boolean) && spec_text.empty());
  if (is_text) {
    if (spec.type != 0 && spec.type != 's') fail(fmt::format("the format '{}' of a {}", spec.type, type_name(value)));
    if (!spec_text.empty() && !value.is(Kind::string) && conversion == 0) fail("the value that is formatted is neither a string nor a number");
    if (spec.align == '=') fail("'=' aligns numbers only");
    Builder text(e.budget());
    if (conversion == 'r') append_repr(e, text, value);
    else append_string(e, text, value);
    return add_text(out, text.text(), spec, spec.align != 0 ? spec.align : '<');
  }
  if (value.is(Kind::floating) && std::string_view("dxXob").find(spec.type) != std::string_view::npos && spec.type != 0) {
    fail(fmt::format("the format '{}' of a float", spec.type));
  }
  std::string digits;
  if (spec.type == 0 && (value.is_whole() || spec.precision < 0)) {
    digits = value.is_whole() ? number_text(spec, value, 'd')
                              : with_sign(spec, std::signbit(value.number()), detail::python_float(std::fabs(value.number())));
  } else if (spec.type != 0 && std::string_view("dxXobfFeEg%").find(spec.type) != std::string_view::npos) {
    digits = number_text(spec, value, spec.type);
  } else {
    fail(fmt::format("the format '{}' is not supported", spec_text), ErrorCode::unsupported);
  }
  add_padded(out, Text(digits, value.origin()), spec, spec.align != 0 ? spec.align : '>');
}

struct Numbering {
  std::size_t next = 0;  // index of the argument that the next "{}" prints
  bool automatic = false, manual = false;
};

// Returns the value that a replacement field names: "0", "name", "0.key", "name[key]".
Value field_value(Evaluator& e, std::string_view field, const Args& args, Numbering& numbering) {
  const std::size_t first = std::min(field.find_first_of(".["), field.size());
  const std::string_view name = field.substr(0, first);
  Value value;
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) {
    std::size_t at = 0;
    const std::size_t index = name.empty() ? numbering.next++ : static_cast<std::size_t>(read_number(name, at));
    (name.empty() ? numbering.automatic : numbering.manual) = true;
    if (numbering.automatic && numbering.manual) fail("format() mixes places with numbers and places without");
    if (index >= args.positional.size()) fail("format() has fewer values than places");
    value = args.positional[index];
  } else {
    bool found = false;
    for (const auto& [key, given] : args.keyword) {
      if (key == name) value = given, found = true;
    }
    if (!found) fail(fmt::format("format() is not given '{}'", name.substr(0, 40)));
  }
  for (std::size_t at = first; at < field.size();) {
    if (field[at] == '.') {
      const std::size_t end = std::min(field.find_first_of(".[", at + 1), field.size());
      value = e.attribute(value, field.substr(at + 1, end - at - 1));
      at = end;
    } else {
      const std::size_t end = field.find(']', at);
      if (end == field.npos) fail("format() with '[' that is not closed");
      const std::string_view key = field.substr(at + 1, end - at - 1);
      const bool number = !key.empty() && key.find_first_not_of("0123456789") == key.npos;
      std::size_t digit = 0;
      value = e.item(value, number ? Value::integer(read_number(key, digit)) : e.string(key));
      at = end + 1;
    }
    if (value.is(Kind::undefined)) fail_undefined(value);
  }
  return value;
}

}  // namespace

Value percent_format(Evaluator& evaluator, const Text& format, const Value& values) {
  return Percent(evaluator, format, values).run();
}

Value brace_format(Evaluator& e, const Text& format, const Args& args) {
  const std::string_view text = format.bytes();
  Builder out(e.budget());
  Numbering numbering;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t brace = std::min(text.find_first_of("{}", at), text.size());
    out.add(format, at, brace);
    at = brace;
    if (at == text.size()) break;
    if (at + 1 < text.size() && text[at + 1] == text[at]) {
      out.add(format, at, at + 1);
      at += 2;
      continue;
    }
    const std::size_t end = text.find('}', at);
    if (text[at] == '}' || end == text.npos) fail("format() with a single brace");
    std::string_view field = text.substr(at + 1, end - at - 1);
    if (field.find('{') != field.npos) fail("format() with braces in braces", ErrorCode::unsupported);
    std::string_view spec;
    if (const std::size_t colon = field.find(':'); colon != field.npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = 0;
    if (const std::size_t mark = field.find('!'); mark != field.npos) {
      if (field.substr(mark) != "!s" && field.substr(mark) != "!r") fail("format() knows !s and !r", ErrorCode::unsupported);
      conversion = field[mark + 1];
      field = field.substr(0, mark);
    }
    put_braced(e, out, field_value(e, field, args, numbering), spec, conversion);
    at = end + 1;
  }
  return out.finish();
}

}  // namespace tessera::jinja
