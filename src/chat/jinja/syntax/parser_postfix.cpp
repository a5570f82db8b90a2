// Parses what may follow an operand: attributes, subscripts, calls, filters and tests.
#include "chat/jinja/syntax/parser_state.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

Arguments parse_arguments(ParserState& s) {
  const std::uint32_t line = s.current().line;
  s.expect_op("(");
  Arguments arguments;
  const auto ensure = [&](bool fine) {
    if (!fine) s.fail_at(line, "arguments in an order that a call does not take");
  };
  for (bool first = true; !s.current().is_op(")"); first = false) {
    if (!first) {
      s.expect_op(",");
      if (s.current().is_op(")")) break;
    }
    if (s.skip_op("*")) {
      ensure(arguments.star == nullptr && arguments.star_star == nullptr);
      arguments.star = parse_expression(s);
    } else if (s.skip_op("**")) {
      ensure(arguments.star_star == nullptr);
      arguments.star_star = parse_expression(s);
    } else if (s.current().kind == TokenKind::name && s.look().is_op("=")) {
      ensure(arguments.star_star == nullptr);
      const Name name = s.expect_identifier();
      s.expect_op("=");
      for (const auto& [other, value] : arguments.keyword) {
        if (other == name) s.fail_at(line, fmt::format("the argument '{}' is given twice", s.program.names[name]));
      }
      arguments.keyword.emplace_back(name, parse_expression(s));
    } else {
      ensure(arguments.star == nullptr && arguments.star_star == nullptr && arguments.keyword.empty());
      arguments.positional.push_back(parse_expression(s));
    }
  }
  s.expect_op(")");
  return arguments;
}

const Expr* parse_call(ParserState& s, const Expr* callee) {
  const std::uint32_t line = s.current().line;
  Arguments arguments = parse_arguments(s);
  Expr& expr = s.make(ExprKind::call, line, {callee});
  expr.arguments = std::move(arguments);
  s.settle(expr);
  return &expr;
}

// Parses the content of the brackets of a subscript: an index or a slice.
const Expr* parse_index(ParserState& s) {
  const std::uint32_t line = s.current().line;
  const auto at_end = [&] { return s.current().is_op("]") || s.current().is_op(",") || s.current().is_op(":"); };
  const Expr* start = nullptr;
  if (!s.current().is_op(":")) {
    start = parse_expression(s);
    if (!s.current().is_op(":")) return start;
  }
  s.expect_op(":");
  const Expr* stop = at_end() ? nullptr : parse_expression(s);
  const Expr* step = nullptr;
  if (s.skip_op(":") && !at_end()) step = parse_expression(s);
  return &s.make(ExprKind::slice, line, {start, stop, step});
}

const Expr* parse_subscript(ParserState& s, const Expr* operand) {
  const std::uint32_t line = s.current().line;
  if (s.skip_op(".")) {
    const Token& token = s.next();
    if (token.kind == TokenKind::name) {
      Expr& expr = s.make(ExprKind::attribute, line, {operand});
      expr.name = s.intern(token.text);
      return &expr;
    }
    if (token.kind != TokenKind::integer) s.fail_at(token.line, "expected a name or a number behind '.'");
    Expr& index = s.make(ExprKind::integer, line);
    for (const char c : token.text.substr(0, 18)) {
      if (c >= '0' && c <= '9') index.integer = index.integer * 10 + (c - '0');
    }
    return &s.make(ExprKind::subscript, line, {operand, &index});
  }
  s.expect_op("[");
  std::vector<const Expr*> items;
  while (!s.current().is_op("]")) {
    if (!items.empty()) s.expect_op(",");
    items.push_back(parse_index(s));
  }
  s.expect_op("]");
  if (items.size() == 1) return &s.make(ExprKind::subscript, line, {operand, items[0]});
  for (const Expr* item : items) {
    if (item->kind == ExprKind::slice) s.fail_at(line, "a slice among several indices", ErrorCode::unsupported);
  }
  const Expr* tuple = &s.make(ExprKind::tuple, line, std::move(items));
  return &s.make(ExprKind::subscript, line, {operand, tuple});
}

Name parse_dotted_name(ParserState& s) {
  if (s.current().kind != TokenKind::name) s.fail_here("expected the name of a filter or test");
  std::string name = s.next().text;
  while (s.skip_op(".")) {
    if (s.current().kind != TokenKind::name) s.fail_here("expected a name behind '.'");
    name.append(1, '.').append(s.next().text);
  }
  return s.intern(name);
}

}  // namespace

const Expr* parse_postfix(ParserState& s, const Expr* operand) {
  for (;;) {
    if (s.current().is_op(".") || s.current().is_op("[")) {
      operand = parse_subscript(s, operand);
    } else if (s.current().is_op("(")) {
      operand = parse_call(s, operand);
    } else {
      return operand;
    }
  }
}

const Expr* parse_filter_expression(ParserState& s, const Expr* operand) {
  for (;;) {
    if (s.current().is_op("|")) {
      operand = parse_filters(s, operand);
    } else if (s.skip_name("is")) {
      operand = parse_test(s, operand);
    } else if (s.current().is_op("(")) {
      operand = parse_call(s, operand);
    } else {
      return operand;
    }
  }
}

const Expr* parse_filters(ParserState& s, const Expr* operand) {
  while (s.skip_op("|")) operand = parse_filter(s, operand);
  return operand;
}

const Expr* parse_filter(ParserState& s, const Expr* operand) {
  const std::uint32_t line = s.current().line;
  const Name name = parse_dotted_name(s);
  Arguments arguments;
  if (s.current().is_op("(")) arguments = parse_arguments(s);
  Expr& expr = s.make(ExprKind::filter, line, {operand});
  expr.name = name;
  expr.arguments = std::move(arguments);
  s.settle(expr);
  return &expr;
}

const Expr* parse_test(ParserState& s, const Expr* operand) {
  const std::uint32_t line = s.current().line;
  const bool negated = s.skip_name("not");
  const Name name = parse_dotted_name(s);
  Arguments arguments;
  const Token& token = s.current();
  const bool operand_follows = token.kind == TokenKind::string || token.kind == TokenKind::integer ||
                               token.kind == TokenKind::floating || token.is_op("[") || token.is_op("{") ||
                               (token.kind == TokenKind::name && token.text != "else" && token.text != "or" &&
                                token.text != "and");
  if (token.is_op("(")) {
    arguments = parse_arguments(s);
  } else if (operand_follows) {
    if (token.is_name("is")) s.fail_here("tests do not chain");
    arguments.positional.push_back(parse_postfix(s, parse_primary(s)));
  }
  Expr& expr = s.make(ExprKind::test, line, {operand});
  expr.name = name;
  expr.arguments = std::move(arguments);
  s.settle(expr);
  return negated ? &s.make(ExprKind::logical_not, line, {&expr}) : &expr;
}

}  // namespace tessera::jinja
