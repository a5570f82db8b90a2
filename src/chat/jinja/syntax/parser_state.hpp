// The tokens and nodes that the parsers of expressions and of statements share.
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
  static constexpr std::uint32_t kDeepest = 200;  // brackets in brackets, blocks in blocks, and terms of one chain

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
  // Updates a node after children were added to it by hand.
  void settle(Expr& expr) const;
  [[nodiscard]] Stmt& make(StmtKind kind, std::uint32_t line);

  // Counts a level of nesting as long as it lives.
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
  std::vector<Parameters*> macros;  // macros whose bodies are being parsed: the names that the bodies use are noted

 private:
  void count_node();

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t level_ = 0;
  std::size_t nodes_ = 0;
  std::unordered_map<std::string, Name> names_;
};

// The parts of the grammar, one file each.
const Expr* parse_expression(ParserState& state);
const Expr* parse_without_condition(ParserState& state);          // no "a if b else c"
const Expr* parse_tuple(ParserState& state, bool with_condition);  // "a, b" without brackets; a single expression is no tuple
const Expr* parse_filters(ParserState& state, const Expr* operand);  // "| a | b" behind an operand
const Expr* parse_filter(ParserState& state, const Expr* operand);   // "a(b)", without the bar
const Expr* parse_postfix(ParserState& state, const Expr* operand);  // ".a", "[b]", "(c)"
const Expr* parse_primary(ParserState& state);
const Expr* parse_test(ParserState& state, const Expr* operand);     // behind "is"
const Expr* parse_filter_expression(ParserState& state, const Expr* operand);  // filters, tests and calls

}  // namespace tessera::jinja
