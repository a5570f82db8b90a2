#include <algorithm>

#include "chat/jinja/evaluator.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/printable.hpp"
#include "core/error.hpp"

namespace tessera::jinja {

void Args::bind_to(std::string_view function, const std::string_view* names, std::size_t count, std::size_t required,
                   Value* out) const {
  if (positional.size() > count) {
    fail(fmt::format("{}() takes at most {} arguments, {} are given", function, count, positional.size()));
  }
  std::vector<bool> given(count);
  for (std::size_t i = 0; i < positional.size(); ++i) {
    out[i] = positional[i];
    given[i] = true;
  }
  for (const auto& [name, value] : keyword) {
    const auto* at = std::find(names, names + count, name);
    if (at == names + count) fail(fmt::format("{}() has no argument '{}'", function, detail::printable(name, 40)));
    const auto i = static_cast<std::size_t>(at - names);
    if (given[i]) fail(fmt::format("{}() is given '{}' twice", function, name));
    out[i] = value;
    given[i] = true;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!given[i]) fail(fmt::format("{}() needs an argument '{}'", function, names[i]));
  }
}

Value Evaluator::eval(const Expr& expr) {
  budget_.spend(1);
  try {
    return eval_plain(expr);
  } catch (Failure& failure) {
    if (failure.line == 0) {
      failure.line = expr.line;
      failure.construct = describe(program_, expr);
    }
    throw;
  }
}

Value Evaluator::eval_plain(const Expr& expr) {
  const auto operand = [&](std::size_t i) { return eval(*expr.items[i]); };
  const auto all = [&] {
    Values values;
    values.reserve(expr.items.size());
    for (const Expr* item : expr.items) values.push_back(eval(*item));
    return values;
  };
  switch (expr.kind) {
    case ExprKind::text: return string(expr.text);
    case ExprKind::integer: return Value::integer(expr.integer);
    case ExprKind::big_integer:
      return Value::object(Kind::big_integer,
                           std::make_shared<String>(budget_, Text(expr.text, TextOrigin::from_template)));
    case ExprKind::floating: return Value::floating(expr.floating);
    case ExprKind::boolean: return Value::boolean(expr.truth);
    case ExprKind::none: return Value::none();
    case ExprKind::variable: return variable(expr.name);
    case ExprKind::list: return make_list(budget_, all());
    case ExprKind::tuple: return make_tuple(budget_, all());
    case ExprKind::dict: return eval_dict(expr);
    case ExprKind::attribute: return attribute(operand(0), program_.names[expr.name]);
    case ExprKind::subscript: return eval_subscript(expr);
    case ExprKind::slice: fail("a slice stands outside of a subscript");
    case ExprKind::call: {
      const Value callee = operand(0);
      return call(callee, eval_arguments(expr.arguments));
    }
    case ExprKind::filter: {
      if (expr.items[0] == nullptr) {
        const Value input = filter_input_ != nullptr ? *filter_input_ : Value();
        return apply_filter(program_.names[expr.name], input, eval_arguments(expr.arguments));
      }
      const Value value = operand(0);
      return apply_filter(program_.names[expr.name], value, eval_arguments(expr.arguments));
    }
    case ExprKind::test: {
      const Value value = operand(0);
      return Value::boolean(apply_test(program_.names[expr.name], value, eval_arguments(expr.arguments)));
    }
    case ExprKind::negate: return negated(budget_, operand(0));
    case ExprKind::plus: {
      Value value = operand(0);
      if (!value.is_number()) fail(fmt::format("'+' before a {}", type_name(value)));
      return value.is(Kind::boolean) ? Value::integer(value.whole()) : value;
    }
    case ExprKind::logical_not: return Value::boolean(!truth(operand(0)));
    case ExprKind::add:
    case ExprKind::subtract:
    case ExprKind::multiply:
    case ExprKind::divide:
    case ExprKind::floor_divide:
    case ExprKind::modulo:
    case ExprKind::power: {
      const Value left = operand(0), right = operand(1);
      if (expr.kind == ExprKind::modulo && left.is(Kind::string)) {
        if (left.is_safe()) fail("'%' on a |safe string is not supported", ErrorCode::unsupported);
        return percent_format(*this, left.text(), right);
      }
      if (expr.kind == ExprKind::add && left.is(Kind::string) && right.is(Kind::string) &&
          left.is_safe() != right.is_safe()) {
        const Value &plain = left.is_safe() ? right : left, &safe = left.is_safe() ? left : right;
        const Value escape = escaped(*this, plain);
        return arithmetic(budget_, ExprKind::add, left.is_safe() ? safe : escape, left.is_safe() ? escape : safe)
            .as_safe(true);
      }
      const Value result = arithmetic(budget_, expr.kind, left, right);
      return left.is_safe() ? result.as_safe(true) : result;
    }
    case ExprKind::concat: return eval_concat(expr);
    case ExprKind::logical_and: {
      Value left = operand(0);
      return truth(left) ? operand(1) : left;
    }
    case ExprKind::logical_or: {
      Value left = operand(0);
      return truth(left) ? left : operand(1);
    }
    case ExprKind::comparison: return eval_comparison(expr);
    case ExprKind::conditional:
      if (truth(operand(1))) return operand(0);
      if (expr.items[2] != nullptr) return operand(2);
      return make_missing(budget_, "an inline 'if' without 'else' was not taken, and its value is used");
  }
  return {};
}

Value Evaluator::eval_comparison(const Expr& expr) {
  Value left = eval(*expr.items[0]);
  for (std::size_t i = 0; i < expr.operators.size(); ++i) {
    Value right = eval(*expr.items[i + 1]);
    // If an operand is NaN, it is neither less than nor greater than nor equal to the other.
    const bool unordered = (left.is(Kind::floating) && left.number() != left.number()) ||
                           (right.is(Kind::floating) && right.number() != right.number());
    const auto order = [&] { return compare(budget_, left, right); };
    const auto is_true = [&] {
      switch (expr.operators[i]) {
        case Comparison::equal: return equal(budget_, left, right);
        case Comparison::not_equal: return !equal(budget_, left, right);
        case Comparison::less: return order() < 0 && !unordered;
        case Comparison::less_equal: return order() <= 0 && !unordered;
        case Comparison::greater: return order() > 0 && !unordered;
        case Comparison::greater_equal: return order() >= 0 && !unordered;
        case Comparison::in: return contains(budget_, right, left);
        case Comparison::not_in: return !contains(budget_, right, left);
      }
      return false;
    };
    if (!is_true()) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Evaluator::eval_concat(const Expr& expr) {
  Values values;
  for (const Expr* item : expr.items) values.push_back(eval(*item));
  Builder out(budget_);
  for (const Value& value : values) append_string(*this, out, value);
  return out.finish();
}

Value Evaluator::eval_dict(const Expr& expr) {
  Members members;
  for (std::size_t i = 0; i + 1 < expr.items.size(); i += 2) {
    Value key = eval(*expr.items[i]);
    members.emplace_back(std::move(key), eval(*expr.items[i + 1]));
  }
  return make_dict(budget_, std::move(members));
}

Value Evaluator::eval_subscript(const Expr& expr) {
  const Value value = eval(*expr.items[0]);
  const Expr& index = *expr.items[1];
  if (index.kind != ExprKind::slice) return item(value, eval(index));
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) bounds[i] = index.items[i] != nullptr ? eval(*index.items[i]) : Value::none();
  return sliced(budget_, value, bounds[0], bounds[1], bounds[2]).as_safe(value.is_safe());
}

Args Evaluator::eval_arguments(const Arguments& arguments) {
  Args args;
  for (const Expr* expr : arguments.positional) args.positional.push_back(eval(*expr));
  if (arguments.star != nullptr) {
    for (Value& value : iterate(budget_, eval(*arguments.star))) args.positional.push_back(std::move(value));
  }
  for (const auto& [name, expr] : arguments.keyword) args.keyword.emplace_back(program_.names[name], eval(*expr));
  if (arguments.star_star != nullptr) {
    const Value more = eval(*arguments.star_star);
    if (!more.is(Kind::dict)) fail(fmt::format("** needs a dict, not a {}", type_name(more)));
    for (const auto& [key, value] : more.members()) {
      if (!key.is(Kind::string)) fail("** needs names as keys");
      budget_.spend(1 + args.keyword.size());
      for (const auto& [name, other] : args.keyword) {
        if (name == key.bytes()) fail(fmt::format("the argument '{}' is given twice", detail::printable(name, 40)));
      }
      args.keyword.emplace_back(std::string(key.bytes()), value);
    }
  }
  return args;
}

Value Evaluator::call(const Value& callee, const Args& args) {
  budget_.spend(1);
  if (callee.is(Kind::undefined)) fail_undefined(callee);
  if (callee.is(Kind::loop)) {
    const auto [iterable] = args.bind<1>("loop", {"iterable"}, 1);
    return loop_again(callee.as<Loop>(), iterable);
  }
  if (!callee.is(Kind::callable)) fail(fmt::format("a {} cannot be called", type_name(callee)));
  return callee.as<Callable>().call(*this, args);
}

namespace {

// Returns an attribute of the variable `loop`, such as loop.first or loop.index.
Value loop_attribute(Evaluator& evaluator, const Value& value, std::string_view name) {
  const auto& loop = value.as<Loop>();
  if (loop.items == nullptr) fail("`loop` is used after its loop has ended");
  const auto at = static_cast<std::int64_t>(loop.index), size = static_cast<std::int64_t>(loop.items->size());
  if (name == "index") return Value::integer(at + 1);
  if (name == "index0") return Value::integer(at);
  if (name == "revindex") return Value::integer(size - at);
  if (name == "revindex0") return Value::integer(size - at - 1);
  if (name == "first") return Value::boolean(at == 0);
  if (name == "last") return Value::boolean(at + 1 == size);
  if (name == "length") return Value::integer(size);
  if (name == "depth") return Value::integer(loop.level + 1);
  if (name == "depth0") return Value::integer(loop.level);
  if (name == "previtem") {
    return at > 0 ? (*loop.items)[loop.index - 1] : make_missing(evaluator.budget(), "there is no previous item");
  }
  if (name == "nextitem") {
    return at + 1 < size ? (*loop.items)[loop.index + 1] : make_missing(evaluator.budget(), "there is no next item");
  }
  return find_method(evaluator, value, name);
}

}  // namespace

Value Evaluator::attribute(const Value& of, std::string_view name) {
  switch (of.kind()) {
    case Kind::undefined: fail_undefined(of);
    case Kind::loop: return loop_attribute(*this, of, name);
    case Kind::name_space:
      for (const auto& [other, value] : of.pointed<Namespace>().attributes) {
        if (other == name) return value;
      }
      break;
    case Kind::callable:
      if (Value found = of.as<Callable>().attribute(*this, name); !found.is(Kind::undefined)) return found;
      break;
    default:
      if (Value method = find_method(*this, of, name); !method.is(Kind::undefined)) return method;
      if (of.is(Kind::dict)) {
        if (const Value* value = find_member(budget_, of.as<Dict>(), name)) return *value;
      }
  }
  return make_missing(budget_, fmt::format("a {} has no attribute '{}'", type_name(of), detail::printable(name, 40)));
}

Value Evaluator::item(const Value& of, const Value& key) {
  switch (of.kind()) {
    case Kind::undefined: fail_undefined(of);
    case Kind::dict:
      if (key.is(Kind::list) || key.is(Kind::dict)) break;  // lists and dicts cannot be keys
      if (const Value* value = find_member(budget_, of.as<Dict>(), key)) return *value;
      break;
    case Kind::list:
    case Kind::tuple:
    case Kind::string:
    case Kind::range: {
      if (!key.is_whole()) break;
      const std::int64_t size = length(budget_, of);
      const std::int64_t at = key.whole() < 0 ? key.whole() + size : key.whole();
      if (at < 0 || at >= size) break;
      if (of.is(Kind::range)) return Value::integer(of.as<Range>().start + at * of.as<Range>().step);
      if (!of.is(Kind::string)) return of.items()[static_cast<std::size_t>(at)];
      const std::size_t begin = character_offset(of.bytes(), static_cast<std::size_t>(at));
      return make_string(budget_, of.text().slice(begin, begin + character_size(of.bytes().substr(begin))));
    }
    default: break;
  }
  if (key.is(Kind::string)) {
    // As in jinja2, value["name"] reads an attribute if the value has no such key. Of a dict only methods are tried here, because its keys
    // were tried above.
    if (!of.is(Kind::dict)) return attribute(of, key.bytes());
    if (Value method = find_method(*this, of, key.bytes()); !method.is(Kind::undefined)) return method;
    return make_missing(budget_, fmt::format("a dict has no element '{}'", detail::printable(key.bytes(), 40)));
  }
  return make_missing(budget_, fmt::format("a {} has no such element", type_name(of)));
}

}  // namespace tessera::jinja
