// ParserState has the tokens and the nodes. The parsers of expressions and of statements share it.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chat/jinja/budget.hpp"
#include "chat/jinja/syntax/ast.hpp"
#include "chat/jinja/syntax/lexer.hpp"

namespace tessera::jinja {

class ParserState {
 public:
  static constexpr std::size_t kMostNodes = 30'000;
  // Limit for nested brackets, for nested blocks, and for the terms of one chain of operators.
  static constexpr std::uint32_t kDeepest = 200;

  explicit ParserState(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  const Token& next() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool skip_op(std::string_view text) { return current().is_op(text) ? (next(), true) : false; }
  bool skip_name(std::string_view text) { return current().is_name(text) ? (next(), true) : false; }
  void expect_op(std::string_view text);
  void expect_name(std::string_view text);
  Name expect_identifier();

  [[noreturn]] void fail_here(std::string message) const;
  [[noreturn]] static void fail_at(std::uint32_t line, std::string message,
                                   ErrorCode code = ErrorCode::invalid_argument);

  [[nodiscard]] Name intern(const std::string& text);
  [[nodiscard]] Expr& make(ExprKind kind, std::uint32_t line, std::vector<const Expr*> items = {});
  // Computes a node's depth again, after children were added to it.
  void settle(Expr& expr) const;
  [[nodiscard]] Stmt& make(StmtKind kind, std::uint32_t line);

  // Counts one level of nesting, from its constructor to its destructor.
  class Level {
   public:
    explicit Level(ParserState& state) : state_(state) {
      if (++state_.level_ > kDeepest) {
        fail_at(state_.current().line, "the template nests too deep", ErrorCode::over_budget);
      }
    }
    ~Level() { --state_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ParserState& state_;
  };

  Program program;
  std::vector<Parameters*> macros;  // the macros whose bodies are being parsed; names such as caller that a body uses are recorded here

 private:
  void count_node();

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t level_ = 0;
  std::size_t nodes_ = 0;
  std::unordered_map<std::string, Name> names_;
};

// Parsers of parts of the grammar, each in a file of its own.
const Expr* parse_expression(ParserState& state);
const Expr* parse_without_condition(ParserState& state);          // does not parse "a if b else c"
// Parses a tuple without brackets ("a, b"), or one expression, which is returned as it is. `with_condition`: parses "a if b else c" too.
const Expr* parse_tuple(ParserState& state, bool with_condition);
const Expr* parse_filters(ParserState& state, const Expr* operand);  // "| a | b" after an operand
const Expr* parse_filter(ParserState& state, const Expr* operand);   // one filter "a(b)", without the bar before it
const Expr* parse_postfix(ParserState& state, const Expr* operand);  // ".a", "[b]", "(c)" after an operand
const Expr* parse_primary(ParserState& state);
const Expr* parse_test(ParserState& state, const Expr* operand);     // the test after "is"
const Expr* parse_filter_expression(ParserState& state, const Expr* operand);  // filters, tests and calls after an operand

}  // namespace tessera::jinja
