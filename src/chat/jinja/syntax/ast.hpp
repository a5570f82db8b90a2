// A parsed template. Nodes live as long as the Program and refer to each other by pointer; names are numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::jinja {

using Name = std::uint32_t;  // an index of Program::names

enum class ExprKind : std::uint8_t {
  text, integer, big_integer, floating, boolean, none,  // literals
  variable,
  list, tuple, dict,     // items; for a dict key, value, key, value, ...
  attribute,             // items[0].name
  subscript,             // items[0][items[1]]
  slice,                 // items: start, stop, step, each may be nullptr; stands in a subscript only
  call,                  // items[0](arguments)
  filter,                // items[0] | name(arguments); items[0] is nullptr for the text of a block
  test,                  // items[0] is name(arguments)
  negate, plus, logical_not,
  add, subtract, multiply, divide, floor_divide, modulo, power,
  concat,                // items ~ items ~ ...
  logical_and, logical_or,
  comparison,            // items[0] operators[0] items[1] operators[1] ...
  conditional,           // items[0] if items[1] else items[2], which may be nullptr
};

enum class Comparison : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct Expr;

struct Arguments {
  std::vector<const Expr*> positional;
  std::vector<std::pair<Name, const Expr*>> keyword;
  const Expr* star = nullptr;       // *values
  const Expr* star_star = nullptr;  // **dict
};

struct Expr {
  ExprKind kind;
  bool truth = false;      // value of a boolean
  std::uint32_t line = 0;
  std::uint32_t depth = 1; // depth of the tree below
  Name name = 0;
  std::int64_t integer = 0;
  double floating = 0;
  std::string text;        // text of a literal
  std::vector<const Expr*> items;
  std::vector<Comparison> operators;
  Arguments arguments;
};

enum class StmtKind : std::uint8_t {
  text,        // text of the template as it is
  output,      // {{ value }}
  set,         // target = value
  set_block,   // target = what the body prints, through value's filters
  branch,      // if / elif / else: bodies[i] under tests[i], an else without a test at the end
  loop,        // for target in value [if test], bodies: body, else
  macro,
  call_block,  // {% call(parameters) value %} body
  filter_block,
  with,        // targets = values, body
  scope,       // {% generation %}: the body alone
  break_loop, continue_loop,
};

// The target of an assignment: name, name.attribute (of a namespace) or a tuple of targets.
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
  std::vector<const Expr*> defaults;  // defaults of the last parameters
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // the body names them
};

struct Stmt {
  StmtKind kind;
  bool recursive = false;  // for a loop
  std::uint32_t line = 0;
  Name name = 0;  // name of a macro
  std::string text;
  const Expr* value = nullptr;
  const Expr* test = nullptr;  // test of a loop
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
  Program(const Program&) = delete;  // nodes point at each other
  Program& operator=(const Program&) = delete;

  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::vector<std::string> names;
  Body body;
};

// Returns what errors call a node: "{% for %}", "{{ }}", "the filter 'trim'".
[[nodiscard]] std::string describe(const Program& program, const Expr& expr);
[[nodiscard]] std::string_view describe(const Stmt& stmt) noexcept;

}  // namespace tessera::jinja
