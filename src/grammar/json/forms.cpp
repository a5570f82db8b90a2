#include "grammar/json/forms.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tessera::grammar {

namespace {

constexpr std::size_t kPlainDigits = 16;  // about as many digits as a double can hold
// The most remainders of multipleOf with which the number of digits before the point of a plain number is limited. The limit makes the
// automaton keep a remainder for each count of digits. With more remainders it would take too long to find out which beginnings of a number
// can still become a multiple within the digits that are left; then the number of digits before the point is not limited.
constexpr std::uint64_t kMostPlainSteps = 64;

// Numbers of digits that a plain number may have before and after its point: enough to write a number between the bounds, however close the
// bounds are.
struct DigitCounts {
  std::uint32_t whole, fraction;
};

DigitCounts room_of(const NumberSpec& spec, std::span<const NumberSpec> excluded) {
  std::size_t whole = spec.low && spec.high ? 1 : kPlainDigits, fraction = kPlainDigits;
  for (const auto* bound : {&spec.low, &spec.high}) {
    if (!*bound) continue;
    whole = std::max(whole, (*bound)->value.whole.size() + (spec.low && spec.high ? 0 : 1));
    fraction = std::max(fraction, (*bound)->value.fraction.size() + 1);
  }
  if (spec.step) fraction = spec.step->scale;
  if (spec.integer) fraction = 0;
  std::uint64_t steps = spec.step ? spec.step->units : 1;
  for (const NumberSpec& other : excluded) {
    if (other.step && steps <= kMostPlainSteps) steps *= std::min(other.step->units, kMostPlainSteps + 1);
  }
  return {steps > kMostPlainSteps ? kUnlimited : static_cast<std::uint32_t>(whole), static_cast<std::uint32_t>(fraction)};
}

}  // namespace

JsonForms::JsonForms(Ir& ir, JsonSpace space, JsonNumbers numbers) : ir_(ir), numbers_(numbers) {
  RegexStore& r = ir.regexes;
  ByteSet spaces;
  for (const char c : std::string_view(" \t\n\r")) spaces.add(static_cast<unsigned char>(c));
  space_ = RegexStore::kEpsilon;
  switch (space) {
    case JsonSpace::any: space_ = r.star(r.bytes(spaces)); break;
    case JsonSpace::none: break;
    case JsonSpace::blank: space_ = r.repeat(r.literal(" "), 0, 1); break;
  }
  any_text_ = r.star(r.character(any_char(), Spelling::json));
}

Regex JsonForms::token(std::string_view text) { return ir_.regexes.concat(space_, ir_.regexes.literal(text)); }

Regex JsonForms::string(Regex content) {
  RegexStore& r = ir_.regexes;
  const std::array parts{token("\""), content, r.literal("\"")};
  return r.concat(parts);
}

Regex JsonForms::key(Regex content) { return ir_.regexes.concat(string(content), token(":")); }

Regex JsonForms::number(Regex content, const NumberSpec& spec, std::span<const NumberSpec> excluded) {
  RegexStore& r = ir_.regexes;
  if (numbers_ == JsonNumbers::plain) {
    const bool bounded = spec.low || spec.high || spec.step || !excluded.empty();
    const Regex digits = plain_number(spec, excluded), plain = bounded ? r.both(content, digits) : digits;
    if (!r.is_empty(plain)) content = plain;
  }
  return r.concat(space_, content);
}

// Returns the expression -?(0|[1-9][0-9]{0,15})(\.[0-9]{1,16})?([eE][+-]?[0-9]{1,2})?, where the counts of digits are adapted to `spec`.
Regex JsonForms::plain_number(const NumberSpec& spec, std::span<const NumberSpec> excluded) {
  RegexStore& r = ir_.regexes;
  const DigitCounts room = room_of(spec, excluded);
  const Regex digit = r.bytes(ByteSet::range('0', '9'));
  const auto optional = [&](Regex part) { return r.repeat(part, 0, 1); };
  const std::uint32_t behind_first = room.whole == kUnlimited ? kUnlimited : room.whole - 1;
  const Regex whole = r.concat(r.bytes(ByteSet::range('1', '9')), r.repeat(digit, 0, behind_first));
  const bool may_be_negative = !spec.low || spec.low->value.negative;
  std::vector<Regex> parts{r.repeat(r.literal("-"), 0, may_be_negative ? 1 : 0), r.alternative(r.literal("0"), whole)};
  if (room.fraction > 0) parts.push_back(optional(r.concat(r.literal("."), r.repeat(digit, 1, room.fraction))));
  if (spec.allows_exponent()) {
    ByteSet e, sign;
    for (const char c : {'e', 'E'}) e.add(static_cast<unsigned char>(c));
    for (const char c : {'+', '-'}) sign.add(static_cast<unsigned char>(c));
    const std::array exponent{r.bytes(e), optional(r.bytes(sign)), r.repeat(digit, 1, 2)};
    parts.push_back(optional(r.concat(exponent)));
  }
  return r.concat(parts);
}

Form JsonForms::object(ObjectForm object) {
  object.separator = comma();
  return ir_.sequence({ir_.regex(token("{")), ir_.object(std::move(object)), ir_.regex(token("}"))});
}

Form JsonForms::list(ListForm list) {
  list.separator = comma();
  return ir_.sequence({ir_.regex(token("[")), ir_.list(std::move(list)), ir_.regex(token("]"))});
}

Form JsonForms::any_object() {
  ObjectForm form;
  form.others.push_back({key(any_text_), any_value()});
  return object(std::move(form));
}

Form JsonForms::any_list() { return list({.prefix = {}, .rest = any_value()}); }

Form JsonForms::any_value() {
  if (value_ == kNone) {
    value_ = ir_.add_rule();
    RegexStore& r = ir_.regexes;
    const std::array scalars{string(any_text_), number(r.number({}), {}), token("true"), token("false"), token("null")};
    const std::array parts{ir_.regex(r.alternative(scalars)), any_object(), any_list()};
    ir_.define(value_, ir_.alternative(parts));
  }
  return ir_.rule(value_);
}

Form JsonForms::document(Form value) { return ir_.sequence({value, ir_.regex(space_)}); }

}  // namespace tessera::grammar
