// A parsed template (syntax tree). The Program owns all nodes, which refer to each other by pointer. Names are stored as numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::jinja {

using Name = std::uint32_t;  // an index into Program::names

enum class ExprKind : std::uint8_t {
  text, integer, big_integer, floating, boolean, none,  // literals
  variable,
  list, tuple, dict,     // `items` are the elements; of a dict: key, value, key, value, ...
  attribute,             // items[0].name
  subscript,             // items[0][items[1]]
  slice,                 // only within a subscript; items are start, stop and step, each perhaps nullptr
  call,                  // items[0](arguments)
  filter,                // items[0] | name(arguments); items[0] is nullptr if the filter is applied to a block's text
  test,                  // items[0] is name(arguments)
  negate, plus, logical_not,
  add, subtract, multiply, divide, floor_divide, modulo, power,
  concat,                // items ~ items ~ ...
  logical_and, logical_or,
  comparison,            // items[0] operators[0] items[1] operators[1] ...
  conditional,           // items[0] if items[1] else items[2]; items[2] may be nullptr
};

enum class Comparison : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct Expr;

struct Arguments {
  std::vector<const Expr*> positional;
  std::vector<std::pair<Name, const Expr*>> keyword;
  const Expr* star = nullptr;       // *values in a call's arguments
  const Expr* star_star = nullptr;  // **dict in a call's arguments
};

struct Expr {
  ExprKind kind;
  bool truth = false;      // value of a boolean
  std::uint32_t line = 0;
  std::uint32_t depth = 1; // height of the tree whose root is this node; 1 for a node without children
  Name name = 0;
  std::int64_t integer = 0;
  double floating = 0;
  std::string text;        // text of a literal
  std::vector<const Expr*> items;
  std::vector<Comparison> operators;
  Arguments arguments;
};

enum class StmtKind : std::uint8_t {
  text,        // text outside of tags, printed as it is
  output,      // {{ value }}
  set,         // target = value
  set_block,   // target = output of the body, passed through the filters in `value`
  branch,      // if / elif / else: bodies[i] runs if tests[i] is true; an else comes last and has no test
  loop,        // for target in value [if test]; bodies are the body and the else body
  macro,
  call_block,  // {% call(parameters) value %} body
  filter_block,
  with,        // targets = values, body
  scope,       // {% generation %}, which has no effect: only its body is run
  break_loop, continue_loop,
};

// The target of an assignment: a name, an attribute of a namespace (name.attribute), or a tuple of targets.
struct Target {
  Name name = 0;
  Name attribute = 0;
  bool has_attribute = false;
  bool is_tuple = false;
  std::vector<Target> parts;
};

struct Stmt;
using Body = std::vector<const Stmt*>;

struct Parameters {
  std::vector<Name> names;
  std::vector<const Expr*> defaults;  // default values of the last parameters, in order
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // true: the body uses caller, varargs or kwargs
};

struct Stmt {
  StmtKind kind;
  bool recursive = false;  // only for loops: may call itself, as loop(...)
  std::uint32_t line = 0;
  Name name = 0;  // only for macros
  std::string text;
  const Expr* value = nullptr;
  const Expr* test = nullptr;  // only for loops: the condition after `if`
  Target target;
  std::vector<const Expr*> tests;
  std::vector<Body> bodies;
  std::vector<Target> targets;
  std::vector<const Expr*> values;
  Parameters parameters;
};

struct Program {
  Program() = default;
  Program(Program&&) = default;
  Program& operator=(Program&&) = default;
  Program(const Program&) = delete;  // not copied, because nodes point at each other
  Program& operator=(const Program&) = delete;

  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::vector<std::string> names;
  Body body;
};

// Returns how errors call a node: "{% for %}", "{{ }}", "the filter 'trim'".
[[nodiscard]] std::string describe(const Program& program, const Expr& expr);
[[nodiscard]] std::string_view describe(const Stmt& stmt) noexcept;

}  // namespace tessera::jinja
