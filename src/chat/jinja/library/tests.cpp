// Tests, which templates write after "is" ("x is defined").
#include <array>

#include "chat/jinja/evaluator.hpp"
#include "chat/jinja/names.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

using Predicate = bool (*)(Evaluator&, const Value&, const Args&);

Value argument(const Args& args) { return args.bind<1>("test", {"other"}, 1)[0]; }

template <Kind kind>
bool is_kind(Evaluator&, const Value& value, const Args&) {
  return value.is(kind);
}
bool defined(Evaluator&, const Value& value, const Args&) { return !value.is(Kind::undefined); }
bool is_integer(Evaluator&, const Value& value, const Args&) { return value.is(Kind::integer) || value.is(Kind::big_integer); }
bool number(Evaluator&, const Value& value, const Args&) { return value.is_number() || value.is(Kind::big_integer); }
template <bool wanted>
bool is_bool(Evaluator&, const Value& value, const Args&) {
  return value.is(Kind::boolean) && (value.whole() != 0) == wanted;
}
bool sequence(Evaluator&, const Value& value, const Args&) {
  return value.is(Kind::string) || value.is_list() || value.is(Kind::dict) || value.is(Kind::range) ||
         value.is(Kind::undefined);
}
bool iterable(Evaluator&, const Value& value, const Args&) { return is_iterable(value); }
bool is_callable(Evaluator&, const Value& value, const Args&) {
  return value.is(Kind::callable) || value.is(Kind::undefined) || value.is(Kind::loop);
}
bool is_escaped(Evaluator&, const Value& value, const Args&) { return value.is_safe(); }

bool divides(Evaluator& e, const Value& value, const Value& by) {
  return equal(e.budget(), arithmetic(e.budget(), ExprKind::modulo, value, by), Value::integer(0));
}
bool even(Evaluator& e, const Value& value, const Args&) { return divides(e, value, Value::integer(2)); }
bool odd(Evaluator& e, const Value& value, const Args&) {
  return equal(e.budget(), arithmetic(e.budget(), ExprKind::modulo, value, Value::integer(2)), Value::integer(1));
}
bool divisibleby(Evaluator& e, const Value& value, const Args& args) { return divides(e, value, argument(args)); }

// Implements islower() and isupper(): true if the text has a letter of that case, and none of the other case.
template <bool upper>
bool in_case(Evaluator& e, const Value& value, const Args&) {
  const Value text = to_string(e, value);
  e.budget().spend_on(8 * text.text().size());
  bool any = false;
  for (std::size_t at = 0; at < text.text().size(); at += character_size(text.bytes().substr(at))) {
    const std::uint32_t c = first_character(text.bytes().substr(at));
    if (upper ? is_lower(c) : is_upper(c)) return false;
    any |= upper ? is_upper(c) : is_lower(c);
  }
  return any;
}

bool sameas(Evaluator& e, const Value& value, const Args& args) {
  const Value other = argument(args);
  if (value.kind() != other.kind()) return false;
  if (value.is(Kind::none) || value.is_whole()) return equal(e.budget(), value, other);
  if (value.is(Kind::name_space)) return equal(e.budget(), value, other);
  return value.identity() != nullptr && value.identity() == other.identity();
}

bool in(Evaluator& e, const Value& value, const Args& args) { return contains(e.budget(), argument(args), value); }
bool eq(Evaluator& e, const Value& value, const Args& args) { return equal(e.budget(), value, argument(args)); }
bool ne(Evaluator& e, const Value& value, const Args& args) { return !equal(e.budget(), value, argument(args)); }
bool lt(Evaluator& e, const Value& value, const Args& args) { return compare(e.budget(), value, argument(args)) < 0; }
bool le(Evaluator& e, const Value& value, const Args& args) { return compare(e.budget(), value, argument(args)) <= 0; }
bool gt(Evaluator& e, const Value& value, const Args& args) { return compare(e.budget(), value, argument(args)) > 0; }
bool ge(Evaluator& e, const Value& value, const Args& args) { return compare(e.budget(), value, argument(args)) >= 0; }

bool names_filter(Evaluator&, const Value& value, const Args&) {
  return value.is(Kind::string) && is_filter(value.bytes());
}
bool names_test(Evaluator&, const Value& value, const Args&) { return value.is(Kind::string) && is_test(value.bytes()); }

struct Entry {
  std::string_view name;
  Predicate run;
};
constexpr Entry kTests[] = {
    {"defined", defined}, {"undefined", is_kind<Kind::undefined>}, {"none", is_kind<Kind::none>},
    {"boolean", is_kind<Kind::boolean>}, {"true", is_bool<true>}, {"false", is_bool<false>}, {"integer", is_integer},
    {"float", is_kind<Kind::floating>}, {"number", number}, {"string", is_kind<Kind::string>},
    {"mapping", is_kind<Kind::dict>}, {"sequence", sequence}, {"iterable", iterable}, {"callable", is_callable},
    {"escaped", is_escaped}, {"odd", odd}, {"even", even}, {"divisibleby", divisibleby}, {"lower", in_case<false>},
    {"upper", in_case<true>}, {"sameas", sameas}, {"in", in}, {"eq", eq}, {"==", eq}, {"equalto", eq}, {"ne", ne},
    {"!=", ne}, {"lt", lt}, {"<", lt}, {"lessthan", lt}, {"le", le}, {"<=", le}, {"gt", gt}, {">", gt},
    {"greaterthan", gt}, {"ge", ge}, {">=", ge}, {"filter", names_filter}, {"test", names_test},
};

const Entry* find_test(std::string_view name) noexcept {
  for (const Entry& entry : kTests) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace

bool is_test(std::string_view name) noexcept { return find_test(name) != nullptr; }

bool Evaluator::apply_test(std::string_view name, const Value& value, const Args& args) {
  const Entry* test = find_test(name);
  if (test == nullptr) fail(fmt::format("there is no test '{}'", name), ErrorCode::unsupported);
  return test->run(*this, value, args);
}

}  // namespace tessera::jinja
