// Parses statements, with one function for each kind of tag.
#include "chat/jinja/syntax/parser.hpp"

#include <initializer_list>

#include "chat/jinja/names.hpp"
#include "chat/jinja/syntax/parser_state.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera::jinja {
namespace {

using ClosingTags = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(std::string_view source) : s_(tokenize(source)) {}

  Program run() {
    s_.program.body = body({});
    check_names(s_.program);
    return std::move(s_.program);
  }

 private:
  // Parses statements up to a tag whose name is in `ends`; that tag's name is then the current token. If `ends` is empty, parses up to
  // the template's end.
  Body body(ClosingTags ends) {
    const ParserState::Level level(s_);
    const std::uint32_t opened = s_.current().line;
    Body out;
    for (;;) {
      const Token& token = s_.next();
      switch (token.kind) {
        case TokenKind::data: {
          Stmt& stmt = s_.make(StmtKind::text, token.line);
          stmt.text = token.text;
          out.push_back(&stmt);
          break;
        }
        case TokenKind::variable_begin: {
          Stmt& stmt = s_.make(StmtKind::output, token.line);
          stmt.value = parse_tuple(s_, true);
          if (s_.next().kind != TokenKind::variable_end) s_.fail_at(token.line, "expected '}}' behind the expression");
          out.push_back(&stmt);
          break;
        }
        case TokenKind::block_begin: {
          for (const std::string_view end : ends) {
            if (s_.current().is_name(end)) return out;
          }
          out.push_back(statement());
          block_end();
          break;
        }
        default:
          if (ends.size() == 0) return out;
          s_.fail_at(opened, fmt::format("the template ends where {{% {} %}} was expected", *(ends.end() - 1)));
      }
    }
  }

  // Parses the rest of a tag (an optional ":", and "%}") and its body, up to and including the name of the closing tag `end`. The caller parses
  // the "%}" after this name.
  Body body_until(std::string_view end) {
    s_.skip_op(":");
    block_end();
    Body out = body({end});
    s_.next();
    return out;
  }

  void block_end() {
    if (s_.current().kind != TokenKind::block_end) s_.fail_here("expected '%}'");
    s_.next();
  }

  const Stmt* statement() {
    if (s_.current().kind != TokenKind::name) s_.fail_here("expected the name of a tag");
    const Token& token = s_.next();
    const std::string_view tag = token.text;
    if (tag == "set") return set(token.line);
    if (tag == "if") return branch(token.line);
    if (tag == "for") return loop(token.line);
    if (tag == "macro") return macro(token.line);
    if (tag == "call") return call_block(token.line);
    if (tag == "filter") return filter_block(token.line);
    if (tag == "with") return with(token.line);
    if (tag == "print") return print(token.line);
    if (tag == "generation") {
      Stmt& stmt = s_.make(StmtKind::scope, token.line);
      stmt.bodies.push_back(body_until("endgeneration"));
      return &stmt;
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) s_.fail_at(token.line, fmt::format("{{% {} %}} outside of a loop", tag));
      return &s_.make(tag == "break" ? StmtKind::break_loop : StmtKind::continue_loop, token.line);
    }
    for (const std::string_view known : {"block", "extends", "include", "import", "from", "autoescape"}) {
      if (tag == known) s_.fail_at(token.line, fmt::format("{{% {} %}} is not supported", tag), ErrorCode::unsupported);
    }
    s_.fail_at(token.line, fmt::format("no tag '{}' is expected here", detail::printable(tag, 40)));
  }

  Target name_target() {
    const Token& token = s_.current();
    if (token.kind != TokenKind::name) s_.fail_here("expected a name to assign to");
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (token.text == constant) s_.fail_here("a constant cannot be assigned to");
    }
    Target target;
    target.name = s_.expect_identifier();
    return target;
  }

  enum class Attributes : std::uint8_t { refused, allowed };  // allowed: the target may be an attribute of a namespace ("namespace.name")

  Target one_target(Attributes attributes) {
    const ParserState::Level level(s_);
    if (s_.skip_op("(")) {
      Target inside = target(attributes);
      s_.expect_op(")");
      return inside;
    }
    Target one = name_target();
    if (attributes == Attributes::allowed && s_.skip_op(".")) {
      one.attribute = s_.expect_identifier();
      one.has_attribute = true;
    }
    return one;
  }

  Target target(Attributes attributes) {
    Target first = one_target(attributes);
    if (!s_.current().is_op(",")) return first;
    Target tuple;
    tuple.is_tuple = true;
    tuple.parts.push_back(std::move(first));
    while (s_.skip_op(",")) {
      if (s_.current().kind != TokenKind::name && !s_.current().is_op("(")) break;
      if (s_.current().is_name("in")) break;
      tuple.parts.push_back(one_target(attributes));
    }
    return tuple;
  }

  const Stmt* set(std::uint32_t line) {
    Stmt& stmt = s_.make(StmtKind::set, line);
    stmt.target = target(Attributes::allowed);
    if (s_.skip_op("=")) {
      stmt.value = parse_tuple(s_, true);
      return &stmt;
    }
    stmt.kind = StmtKind::set_block;
    stmt.value = parse_filters(s_, nullptr);
    stmt.bodies.push_back(body_until("endset"));
    return &stmt;
  }

  const Stmt* branch(std::uint32_t line) {
    Stmt& stmt = s_.make(StmtKind::branch, line);
    for (;;) {
      stmt.tests.push_back(parse_tuple(s_, false));
      s_.skip_op(":");
      block_end();
      stmt.bodies.push_back(body({"elif", "else", "endif"}));
      const std::string_view tag = s_.next().text;
      if (tag == "elif") continue;
      if (tag == "else") stmt.bodies.push_back(body_until("endif"));
      return &stmt;
    }
  }

  const Stmt* loop(std::uint32_t line) {
    Stmt& stmt = s_.make(StmtKind::loop, line);
    stmt.target = target(Attributes::refused);
    s_.expect_name("in");
    stmt.value = parse_tuple(s_, false);
    if (s_.skip_name("if")) stmt.test = parse_expression(s_);
    stmt.recursive = s_.skip_name("recursive");
    s_.skip_op(":");
    block_end();
    ++loops_;
    stmt.bodies.push_back(body({"endfor", "else"}));
    --loops_;
    const bool otherwise = s_.next().text == "else";
    const std::uint32_t loops = loops_;
    // A recursive loop is called like a macro, so break and continue in its else body have no loop around them.
    if (stmt.recursive) loops_ = 0;
    stmt.bodies.push_back(otherwise ? body_until("endfor") : Body{});
    loops_ = loops;
    return &stmt;
  }

  void parameters(Stmt& stmt) {
    Parameters& p = stmt.parameters;
    s_.expect_op("(");
    while (!s_.current().is_op(")")) {
      if (!p.names.empty()) s_.expect_op(",");
      const Name name = name_target().name;
      for (const Name other : p.names) {
        if (other == name) s_.fail_at(stmt.line, fmt::format("two parameters are called '{}'", s_.program.names[name]));
      }
      if (s_.skip_op("=")) {
        p.defaults.push_back(parse_expression(s_));
      } else if (!p.defaults.empty()) {
        s_.fail_here("a parameter without a default behind one that has one");
      }
      p.names.push_back(name);
    }
    s_.expect_op(")");
  }

  // Parses a macro's body. Loops around the macro do not count for break and continue in it.
  void macro_body(Stmt& stmt, std::string_view end) {
    const std::uint32_t loops = std::exchange(loops_, 0);
    s_.macros.push_back(&stmt.parameters);
    stmt.bodies.push_back(body_until(end));
    s_.macros.pop_back();
    loops_ = loops;
  }

  const Stmt* macro(std::uint32_t line) {
    Stmt& stmt = s_.make(StmtKind::macro, line);
    stmt.name = name_target().name;
    parameters(stmt);
    macro_body(stmt, "endmacro");
    return &stmt;
  }

  const Stmt* call_block(std::uint32_t line) {
    Stmt& stmt = s_.make(StmtKind::call_block, line);
    if (s_.current().is_op("(")) parameters(stmt);
    stmt.value = parse_expression(s_);
    if (stmt.value->kind != ExprKind::call) s_.fail_at(line, "{% call %} needs a call");
    macro_body(stmt, "endcall");
    return &stmt;
  }

  const Stmt* filter_block(std::uint32_t line) {
    Stmt& stmt = s_.make(StmtKind::filter_block, line);
    stmt.value = parse_filters(s_, parse_filter(s_, nullptr));
    stmt.bodies.push_back(body_until("endfilter"));
    return &stmt;
  }

  const Stmt* with(std::uint32_t line) {
    Stmt& stmt = s_.make(StmtKind::with, line);
    while (s_.current().kind != TokenKind::block_end && !s_.current().is_op(":")) {
      if (!stmt.targets.empty()) s_.expect_op(",");
      stmt.targets.push_back(one_target(Attributes::refused));
      s_.expect_op("=");
      stmt.values.push_back(parse_expression(s_));
    }
    stmt.bodies.push_back(body_until("endwith"));
    return &stmt;
  }

  const Stmt* print(std::uint32_t line) {
    Stmt& stmt = s_.make(StmtKind::output, line);
    stmt.value = parse_expression(s_);
    return &stmt;
  }

  ParserState s_;
  std::uint32_t loops_ = 0;  // number of loops around the statement that is being parsed
};

}  // namespace

Program parse(std::string_view source) { return Parser(source).run(); }

}  // namespace tessera::jinja
