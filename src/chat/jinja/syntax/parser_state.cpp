#include "chat/jinja/syntax/parser_state.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera::jinja {
namespace {

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::data: return "text";
    case TokenKind::variable_begin: return "'{{'";
    case TokenKind::variable_end: return "'}}'";
    case TokenKind::block_begin: return "'{%'";
    case TokenKind::block_end: return "'%}'";
    case TokenKind::end: return "the end of the template";
    case TokenKind::string: return "a string";
    default: return fmt::format("'{}'", detail::printable(token.text, 40));
  }
}

}  // namespace

void ParserState::fail_at(std::uint32_t line, std::string message, ErrorCode code) {
  throw Failure{code, std::move(message), line};
}
void ParserState::fail_here(std::string message) const {
  fail_at(current().line, fmt::format("{}, got {}", message, shown(current())));
}

void ParserState::expect_op(std::string_view text) {
  if (!skip_op(text)) fail_here(fmt::format("expected '{}'", text));
}
void ParserState::expect_name(std::string_view text) {
  if (!skip_name(text)) fail_here(fmt::format("expected '{}'", text));
}
Name ParserState::expect_identifier() {
  if (current().kind != TokenKind::name) fail_here("expected a name");
  return intern(next().text);
}

Name ParserState::intern(const std::string& text) {
  const auto [at, fresh] = names_.try_emplace(text, static_cast<Name>(program.names.size()));
  if (fresh) program.names.push_back(text);
  return at->second;
}

void ParserState::count_node() {
  if (++nodes_ > kMostNodes) {
    fail_at(current().line, fmt::format("a template of more than {} parts", kMostNodes), ErrorCode::over_budget);
  }
}

Expr& ParserState::make(ExprKind kind, std::uint32_t line, std::vector<const Expr*> items) {
  count_node();
  Expr& expr = program.exprs.emplace_back();
  expr.kind = kind;
  expr.line = line;
  expr.items = std::move(items);
  settle(expr);
  return expr;
}

void ParserState::settle(Expr& expr) const {
  std::uint32_t below = 0;
  const auto look_at = [&](const Expr* child) {
    if (child != nullptr) below = std::max(below, child->depth);
  };
  for (const Expr* item : expr.items) look_at(item);
  for (const Expr* argument : expr.arguments.positional) look_at(argument);
  for (const auto& [name, argument] : expr.arguments.keyword) look_at(argument);
  look_at(expr.arguments.star);
  look_at(expr.arguments.star_star);
  expr.depth = below + 1;
  if (expr.depth > kDeepest) fail_at(expr.line, "an expression of too many levels or terms", ErrorCode::over_budget);
}

Stmt& ParserState::make(StmtKind kind, std::uint32_t line) {
  count_node();
  Stmt& stmt = program.stmts.emplace_back();
  stmt.kind = kind;
  stmt.line = line;
  return stmt;
}

std::string describe(const Program& program, const Expr& expr) {
  const auto named = [&](const char* what) { return fmt::format("{} '{}'", what, detail::printable(program.names[expr.name], 40)); };
  switch (expr.kind) {
    case ExprKind::variable: return named("the variable");
    case ExprKind::attribute: return named("the attribute");
    case ExprKind::filter: return named("the filter");
    case ExprKind::test: return named("the test");
    case ExprKind::subscript: return "a subscript";
    case ExprKind::call: return "a call";
    case ExprKind::comparison: return "a comparison";
    case ExprKind::add: return "'+'";
    case ExprKind::concat: return "'~'";
    case ExprKind::modulo: return "'%'";
    case ExprKind::subtract:
    case ExprKind::multiply:
    case ExprKind::divide:
    case ExprKind::floor_divide:
    case ExprKind::power:
    case ExprKind::negate:
    case ExprKind::plus: return "arithmetic";
    default: return "an expression";
  }
}

std::string_view describe(const Stmt& stmt) noexcept {
  switch (stmt.kind) {
    case StmtKind::text: return "text";
    case StmtKind::output: return "{{ }}";
    case StmtKind::set:
    case StmtKind::set_block: return "{% set %}";
    case StmtKind::branch: return "{% if %}";
    case StmtKind::loop: return "{% for %}";
    case StmtKind::macro: return "{% macro %}";
    case StmtKind::call_block: return "{% call %}";
    case StmtKind::filter_block: return "{% filter %}";
    case StmtKind::with: return "{% with %}";
    case StmtKind::scope: return "{% generation %}";
    case StmtKind::break_loop: return "{% break %}";
    case StmtKind::continue_loop: return "{% continue %}";
  }
  return "";
}

}  // namespace tessera::jinja
