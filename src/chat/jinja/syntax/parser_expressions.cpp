// Parses expressions, in the order of precedence, the weakest first: if, or, and, not, comparisons, + -, ~, * / // %, **, signs, filters.
#include <charconv>

#include "chat/jinja/syntax/parser_state.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

using Level = ParserState::Level;

const Expr* parse_unary(ParserState& s, bool with_filter = true) {
  const Level level(s);
  const std::uint32_t line = s.current().line;
  const Expr* operand;
  if (s.skip_op("-")) {
    operand = &s.make(ExprKind::negate, line, {parse_unary(s, false)});
  } else if (s.skip_op("+")) {
    operand = &s.make(ExprKind::plus, line, {parse_unary(s, false)});
  } else {
    operand = parse_primary(s);
  }
  operand = parse_postfix(s, operand);
  return with_filter ? parse_filter_expression(s, operand) : operand;
}

const Expr* parse_power(ParserState& s) {
  const Expr* left = parse_unary(s);
  while (s.current().is_op("**")) {
    const std::uint32_t line = s.next().line;
    left = &s.make(ExprKind::power, line, {left, parse_unary(s)});
  }
  return left;
}

const Expr* parse_product(ParserState& s) {
  const Expr* left = parse_power(s);
  for (;;) {
    const Token& token = s.current();
    if (token.kind != TokenKind::op) return left;
    const ExprKind kind = token.text == "*"    ? ExprKind::multiply
                          : token.text == "/"  ? ExprKind::divide
                          : token.text == "//" ? ExprKind::floor_divide
                          : token.text == "%"  ? ExprKind::modulo
                                               : ExprKind::none;
    if (kind == ExprKind::none) return left;
    const std::uint32_t line = s.next().line;
    left = &s.make(kind, line, {left, parse_power(s)});
  }
}

const Expr* parse_concat(ParserState& s) {
  const std::uint32_t line = s.current().line;
  std::vector<const Expr*> items{parse_product(s)};
  while (s.skip_op("~")) items.push_back(parse_product(s));
  return items.size() == 1 ? items[0] : &s.make(ExprKind::concat, line, std::move(items));
}

const Expr* parse_sum(ParserState& s) {
  const Expr* left = parse_concat(s);
  while (s.current().is_op("+") || s.current().is_op("-")) {
    const Token& token = s.next();
    const ExprKind kind = token.text == "+" ? ExprKind::add : ExprKind::subtract;
    const std::uint32_t line = token.line;
    left = &s.make(kind, line, {left, parse_concat(s)});
  }
  return left;
}

const Expr* parse_comparison(ParserState& s) {
  const std::uint32_t line = s.current().line;
  std::vector<const Expr*> items{parse_sum(s)};
  std::vector<Comparison> operators;
  const auto add = [&](Comparison comparison) {
    operators.push_back(comparison);
    items.push_back(parse_sum(s));
  };
  for (;;) {
    if (s.skip_op("==")) add(Comparison::equal);
    else if (s.skip_op("!=")) add(Comparison::not_equal);
    else if (s.skip_op("<")) add(Comparison::less);
    else if (s.skip_op("<=")) add(Comparison::less_equal);
    else if (s.skip_op(">")) add(Comparison::greater);
    else if (s.skip_op(">=")) add(Comparison::greater_equal);
    else if (s.skip_name("in")) add(Comparison::in);
    else if (s.current().is_name("not") && s.look().is_name("in")) {
      s.next();
      s.next();
      add(Comparison::not_in);
    } else {
      break;
    }
  }
  if (operators.empty()) return items[0];
  Expr& expr = s.make(ExprKind::comparison, line, std::move(items));
  expr.operators = std::move(operators);
  return &expr;
}

const Expr* parse_not(ParserState& s) {
  const Level level(s);
  const std::uint32_t line = s.current().line;
  if (s.skip_name("not")) return &s.make(ExprKind::logical_not, line, {parse_not(s)});
  return parse_comparison(s);
}

const Expr* parse_and(ParserState& s) {
  const Expr* left = parse_not(s);
  while (s.current().is_name("and")) {
    const std::uint32_t line = s.next().line;
    left = &s.make(ExprKind::logical_and, line, {left, parse_not(s)});
  }
  return left;
}

const Expr* parse_list(ParserState& s) {
  const std::uint32_t line = s.next().line;
  std::vector<const Expr*> items;
  while (!s.current().is_op("]")) {
    if (!items.empty()) s.expect_op(",");
    if (s.current().is_op("]")) break;
    items.push_back(parse_expression(s));
  }
  s.expect_op("]");
  return &s.make(ExprKind::list, line, std::move(items));
}

const Expr* parse_dict(ParserState& s) {
  const std::uint32_t line = s.next().line;
  std::vector<const Expr*> items;
  while (!s.current().is_op("}")) {
    if (!items.empty()) s.expect_op(",");
    if (s.current().is_op("}")) break;
    items.push_back(parse_expression(s));
    s.expect_op(":");
    items.push_back(parse_expression(s));
  }
  s.expect_op("}");
  return &s.make(ExprKind::dict, line, std::move(items));
}

const Expr* parse_number(ParserState& s) {
  const Token& token = s.next();
  std::string digits = token.text;
  std::erase(digits, '_');
  if (token.kind == TokenKind::floating) {
    Expr& expr = s.make(ExprKind::floating, token.line);
    // If the number is too large or too small, from_chars does not set the value. As in Python, the value is infinity or 0 in this case.
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), expr.floating);
    if (error == std::errc::result_out_of_range) {
      expr.floating = digits.find("e-") == digits.npos && digits.find("E-") == digits.npos
                          ? std::numeric_limits<double>::infinity() : 0.0;
    }
    return &expr;
  }
  int base = 10;
  std::string_view view = digits;
  if (view.size() > 2 && view[0] == '0') {
    const char letter = static_cast<char>(view[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    if (base != 10) view.remove_prefix(2);
  }
  Expr& expr = s.make(ExprKind::integer, token.line);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), expr.integer, base);
  if (error == std::errc::result_out_of_range && base == 10) {
    expr.kind = ExprKind::big_integer;
    expr.text = digits;
  } else if (error != std::errc() || end != view.data() + view.size()) {
    s.fail_at(token.line, fmt::format("'{}' is no number", digits));
  }
  return &expr;
}

}  // namespace

const Expr* parse_without_condition(ParserState& s) {
  const Level level(s);
  const Expr* left = parse_and(s);
  while (s.current().is_name("or")) {
    const std::uint32_t line = s.next().line;
    left = &s.make(ExprKind::logical_or, line, {left, parse_and(s)});
  }
  return left;
}

const Expr* parse_expression(ParserState& s) {
  const Level level(s);
  const Expr* value = parse_without_condition(s);
  while (s.current().is_name("if")) {
    const std::uint32_t line = s.next().line;
    const Expr* test = parse_without_condition(s);
    const Expr* otherwise = s.skip_name("else") ? parse_expression(s) : nullptr;
    value = &s.make(ExprKind::conditional, line, {value, test, otherwise});
  }
  return value;
}

const Expr* parse_primary(ParserState& s) {
  const Token& token = s.current();
  const std::uint32_t line = token.line;
  switch (token.kind) {
    case TokenKind::name: {
      const std::string name = s.next().text;
      if (name == "true" || name == "True" || name == "false" || name == "False") {
        Expr& expr = s.make(ExprKind::boolean, line);
        expr.truth = name == "true" || name == "True";
        return &expr;
      }
      if (name == "none" || name == "None") return &s.make(ExprKind::none, line);
      for (Parameters* macro : s.macros) {
        macro->uses_caller |= name == "caller";
        macro->uses_varargs |= name == "varargs";
        macro->uses_kwargs |= name == "kwargs";
      }
      Expr& expr = s.make(ExprKind::variable, line);
      expr.name = s.intern(name);
      return &expr;
    }
    case TokenKind::string: {
      Expr& expr = s.make(ExprKind::text, line);
      while (s.current().kind == TokenKind::string) expr.text += s.next().text;
      return &expr;
    }
    case TokenKind::integer:
    case TokenKind::floating: return parse_number(s);
    default: break;
  }
  if (token.is_op("[")) return parse_list(s);
  if (token.is_op("{")) return parse_dict(s);
  if (!s.skip_op("(")) s.fail_here("expected an expression");
  // "()" is the empty tuple.
  if (s.skip_op(")")) return &s.make(ExprKind::tuple, line);
  const Expr* inside = parse_tuple(s, true);
  s.expect_op(")");
  return inside;
}

const Expr* parse_tuple(ParserState& s, bool with_condition) {
  const Level level(s);
  const std::uint32_t line = s.current().line;
  std::vector<const Expr*> items;
  bool is_tuple = false;
  for (;;) {
    const Token& token = s.current();
    if (token.kind == TokenKind::variable_end || token.kind == TokenKind::block_end || token.is_op(")")) break;
    if (!with_condition && token.is_name("recursive")) break;
    items.push_back(with_condition ? parse_expression(s) : parse_without_condition(s));
    if (!s.skip_op(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return &s.make(ExprKind::tuple, line, std::move(items));
  if (items.empty()) s.fail_here("expected an expression");
  return items[0];
}

}  // namespace tessera::jinja
