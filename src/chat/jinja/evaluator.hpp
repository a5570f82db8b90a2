// Runs a template's Program: executes its statements, and evaluates its expressions over the variables. Filters, tests and methods are in
// files of their own; they get the Evaluator as an argument, so that they can call it back.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/budget.hpp"
#include "chat/jinja/builder.hpp"
#include "chat/jinja/syntax/ast.hpp"
#include "chat/jinja/value.hpp"

namespace tessera::jinja {

class Evaluator;

// The evaluated arguments of a call.
struct Args {
  Values positional;
  std::vector<std::pair<std::string, Value>> keyword;

  // Assigns a call's arguments to the parameters of a function (`names`). Returns one value for each parameter; the value of a parameter
  // without an argument is undefined. Fails if there are too many arguments, an argument with an unknown name, two arguments for one
  // parameter, or fewer than `required` arguments.
  template <std::size_t N>
  [[nodiscard]] std::array<Value, N> bind(std::string_view function, const std::array<std::string_view, N>& names,
                                          std::size_t required = 0) const {
    std::array<Value, N> out;
    bind_to(function, names.data(), N, required, out.data());
    return out;
  }

 private:
  void bind_to(std::string_view function, const std::string_view* names, std::size_t count, std::size_t required,
               Value* out) const;
};

struct Callable : Object {
  Callable(Budget& budget, std::size_t bytes, std::uint32_t depth = 0) : Object(budget, bytes, depth) {}
  virtual Value call(Evaluator& evaluator, const Args& args) const = 0;
  // Returns an attribute that a template may read, such as a macro's name; undefined if there is none.
  [[nodiscard]] virtual Value attribute(Evaluator&, std::string_view) const { return {}; }
};

// Refers to the scope in which a macro was defined, for when the macro is called. `index`: the scope's place in the list of scopes. The
// scope may have ended by then, and another scope may have its place; `serial` tells whether the scope at the index is still the same.
struct ScopeRef {
  std::uint32_t index;
  std::uint64_t serial;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

// The variable `loop`. A template may keep this variable after the loop's end; then it has no items any more.
struct Loop : Object {
  Loop(Budget& budget, const Stmt& stmt_, const Values& items_, std::uint32_t level_, std::uint32_t scope_)
      : Object(budget, sizeof(Loop)), stmt(stmt_), items(&items_), level(level_), scope(scope_) {}
  const Stmt& stmt;
  mutable const Values* items;
  mutable std::size_t index = 0;      // index of the loop's present item, from 0
  std::uint32_t level;                // depth of a recursive loop's calls to itself, from 0
  std::uint32_t scope;                // index of the scope around the loop
  mutable std::optional<Value> seen;  // the value that loop.changed() was last given
};

class Evaluator {
 public:
  Evaluator(const Program& program, Budget& budget, std::optional<LocalTime> now, std::uint64_t output_bytes);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Gives the template a variable. Call it before run().
  void define(std::string_view name, Value value);
  // Runs the template and returns its output. Throws a Failure that names line and construct.
  [[nodiscard]] Text run();

  // --- For filters, tests, methods and functions.
  [[nodiscard]] Budget& budget() noexcept { return budget_; }
  [[nodiscard]] const std::optional<LocalTime>& now() const noexcept { return now_; }
  [[nodiscard]] Value attribute(const Value& of, std::string_view name);  // of.name
  [[nodiscard]] Value item(const Value& of, const Value& key);            // of[key]
  [[nodiscard]] Value call(const Value& callee, const Args& args);
  [[nodiscard]] Value apply_filter(std::string_view name, const Value& value, const Args& args);
  [[nodiscard]] bool apply_test(std::string_view name, const Value& value, const Args& args);
  [[nodiscard]] Value string(std::string_view bytes) { return make_string(budget_, bytes); }
  [[nodiscard]] Value make_namespace(std::vector<std::pair<std::string, Value>> attributes);
  [[nodiscard]] Value call_macro(const Stmt& macro, const ScopeRef& scope, const Args& args, std::string_view name);
  [[nodiscard]] Value loop_again(const Loop& loop, const Value& iterable);  // loop(...) of a recursive loop
  [[nodiscard]] const Program& program() const noexcept { return program_; }
  // Throws if too much of the machine's stack is used. Call it in functions that recurse over values or nodes.
  void check_stack() const;

 private:
  enum class Flow : std::uint8_t { on, broken, continued };
  struct Scope {
    std::uint32_t parent;
    std::uint64_t serial;
    std::size_t first;  // index in bindings_ of the scope's first binding; the bindings of the next scope begin where these end
  };
  class ScopeGuard;
  class Capture;
  static constexpr std::uint32_t kNoScope = 0xFFFFFFFF;

  // --- Defined in statements.cpp.
  Flow run(const Body& body);
  Flow run(const Stmt& stmt);
  Flow run_branch(const Stmt& stmt);
  Flow run_loop(const Stmt& stmt, const Values& values, std::uint32_t depth);
  Flow run_with(const Stmt& stmt);
  void assign(const Target& target, const Value& value);
  void set(Name name, Value value);
  void write(const Text& text);
  void write(std::string_view bytes, TextOrigin origin);
  void print(const Value& value);
  Flow capture(const Body& body, Value& text);  // `text` gets the body's output, if the body runs to its end
  [[nodiscard]] Value filtered(const Expr* filters, Value value);
  [[nodiscard]] Value variable(Name name);

  // --- Defined in expressions.cpp.
  Value eval(const Expr& expr);
  Value eval_plain(const Expr& expr);
  Value eval_comparison(const Expr& expr);
  Value eval_concat(const Expr& expr);
  Value eval_subscript(const Expr& expr);
  Value eval_dict(const Expr& expr);
  [[nodiscard]] Args eval_arguments(const Arguments& arguments);

  const Program& program_;
  Budget& budget_;
  std::optional<LocalTime> now_;
  std::uint64_t output_left_;
  const char* stack_;  // address in the machine's stack when the evaluator was made

  std::vector<std::optional<Value>> globals_;  // [Name]: value of the template's global variable
  std::vector<Scope> scopes_;
  std::vector<std::pair<Name, Value>> bindings_;
  std::uint32_t scope_ = kNoScope;  // index of the scope into which assignments go
  std::uint64_t serial_ = 0;
  std::deque<Namespace> namespaces_;  // a deque, because values point at its elements
  Text output_;
  Builder* capture_ = nullptr;  // destination of the output of macros, set blocks and the like; nullptr: output goes to output_
  Name loop_name_, caller_name_, varargs_name_, kwargs_name_;
  const Value* filter_input_ = nullptr;  // the value for filters without an operand (in filter blocks)
};

// --- Defined in operators.cpp: Python's arithmetic.
[[nodiscard]] Value arithmetic(Budget& budget, ExprKind op, const Value& a, const Value& b);
[[nodiscard]] Value negated(Budget& budget, const Value& value);
[[nodiscard]] bool contains(Budget& budget, const Value& container, const Value& value);
// Returns value[start:stop:step]. An undefined bound counts as left out.
[[nodiscard]] Value sliced(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step);

// --- Defined in print.cpp: str() and repr().
void append_string(Evaluator& evaluator, Builder& out, const Value& value);
void append_repr(Evaluator& evaluator, Builder& out, const Value& value);
// Returns str(value). If the value is a string, returns it unchanged.
[[nodiscard]] Value to_string(Evaluator& evaluator, const Value& value);
[[nodiscard]] Value escaped(Evaluator& evaluator, const Value& value);  // escapes for HTML, as markupsafe does

// --- Defined in json_text.cpp: the filter tojson.
struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false, indented = false;
  std::string indent;  // written once for each level of nesting
  std::string item_separator = ", ", key_separator = ": ";
};
void append_json(Evaluator& evaluator, Builder& out, const Value& value, const JsonStyle& style);

// --- Defined in format.cpp: "..." % value and "...".format(...).
[[nodiscard]] Value percent_format(Evaluator& evaluator, const Text& format, const Value& values);
[[nodiscard]] Value brace_format(Evaluator& evaluator, const Text& format, const Args& args);

// Returns the value's method of this name (methods.cpp); undefined if values of its type have none.
[[nodiscard]] Value find_method(Evaluator& evaluator, const Value& of, std::string_view name);
// Returns the global function of this name, such as range() (functions.cpp); undefined if there is none.
[[nodiscard]] Value find_function(Evaluator& evaluator, std::string_view name);

}  // namespace tessera::jinja
