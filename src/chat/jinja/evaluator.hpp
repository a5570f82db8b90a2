// Runs a Program: the statements and expressions of a template over its variables. Filters, tests and methods are in files of their own;
// they get the Evaluator to call back.
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

// The arguments of a call, evaluated.
struct Args {
  Values positional;
  std::vector<std::pair<std::string, Value>> keyword;

  // Returns the values by parameter names; undefined for an argument that is not given. Fails on too many, unknown or doubled arguments,
  // and on fewer than `required`.
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
  // Returns an attribute that templates may read (a macro's name); undefined if there is none.
  [[nodiscard]] virtual Value attribute(Evaluator&, std::string_view) const { return {}; }
};

// The scope in which a macro was defined. Scopes end; `serial` tells whether the scope is still the same.
struct ScopeRef {
  std::uint32_t index;
  std::uint64_t serial;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

// The variable `loop`. A template may keep it for longer than the loop runs: then it has no items any more.
struct Loop : Object {
  Loop(Budget& budget, const Stmt& stmt_, const Values& items_, std::uint32_t level_, std::uint32_t scope_)
      : Object(budget, sizeof(Loop)), stmt(stmt_), items(&items_), level(level_), scope(scope_) {}
  const Stmt& stmt;
  mutable const Values* items;
  mutable std::size_t index = 0;      // index of the present item, from 0
  std::uint32_t level;                // level of a recursive loop, from 0
  std::uint32_t scope;                // scope around the loop
  mutable std::optional<Value> seen;  // last value given to changed()
};

class Evaluator {
 public:
  Evaluator(const Program& program, Budget& budget, std::optional<LocalTime> now, std::uint64_t output_bytes);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Sets a variable of the template. Call it before run().
  void define(std::string_view name, Value value);
  // Returns the template's output. Throws Failure, with line and construct.
  [[nodiscard]] Text run();

  // --- for filters, tests, methods and functions
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
  // Throws if the machine's stack is used up. Call it in functions that walk down values or nodes.
  void check_stack() const;

 private:
  enum class Flow : std::uint8_t { on, broken, continued };
  struct Scope {
    std::uint32_t parent;
    std::uint64_t serial;
    std::size_t first;  // index of the first of its bindings_; its bindings end where the next scope's begin
  };
  class ScopeGuard;
  class Capture;
  static constexpr std::uint32_t kNoScope = 0xFFFFFFFF;

  // statements.cpp
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
  Flow capture(const Body& body, Value& text);  // text: the output of the body, if its end is reached
  [[nodiscard]] Value filtered(const Expr* filters, Value value);
  [[nodiscard]] Value variable(Name name);

  // expressions.cpp
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
  const char* stack_;  // place in the stack when run() was called

  std::vector<std::optional<Value>> globals_;  // by name
  std::vector<Scope> scopes_;
  std::vector<std::pair<Name, Value>> bindings_;
  std::uint32_t scope_ = kNoScope;  // scope that assignments go to
  std::uint64_t serial_ = 0;
  std::deque<Namespace> namespaces_;  // values point at them
  Text output_;
  Builder* capture_ = nullptr;  // destination of the output inside of macros, set blocks, ...; nullptr: output_
  Name loop_name_, caller_name_, varargs_name_, kwargs_name_;
  const Value* filter_input_ = nullptr;  // input of filters without an operand
};

// operators.cpp: Python's arithmetic
[[nodiscard]] Value arithmetic(Budget& budget, ExprKind op, const Value& a, const Value& b);
[[nodiscard]] Value negated(Budget& budget, const Value& value);
[[nodiscard]] bool contains(Budget& budget, const Value& container, const Value& value);
// Returns value[start:stop:step]; undefined values count as absent.
[[nodiscard]] Value sliced(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step);

// print.cpp: str() and repr()
void append_string(Evaluator& evaluator, Builder& out, const Value& value);
void append_repr(Evaluator& evaluator, Builder& out, const Value& value);
// Returns str(value) as a string; a string is returned as it is.
[[nodiscard]] Value to_string(Evaluator& evaluator, const Value& value);
[[nodiscard]] Value escaped(Evaluator& evaluator, const Value& value);  // for HTML, as markupsafe does

// json_text.cpp: tojson
struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false, indented = false;
  std::string indent;  // text of one level of indentation
  std::string item_separator = ", ", key_separator = ": ";
};
void append_json(Evaluator& evaluator, Builder& out, const Value& value, const JsonStyle& style);

// format.cpp: "..." % value and "...".format(...)
[[nodiscard]] Value percent_format(Evaluator& evaluator, const Text& format, const Value& values);
[[nodiscard]] Value brace_format(Evaluator& evaluator, const Text& format, const Args& args);

// methods.cpp: returns a method of a value; undefined if values of the type do not have it.
[[nodiscard]] Value find_method(Evaluator& evaluator, const Value& of, std::string_view name);
// functions.cpp: returns range(), namespace(), ...; undefined if there is none.
[[nodiscard]] Value find_function(Evaluator& evaluator, std::string_view name);

}  // namespace tessera::jinja
