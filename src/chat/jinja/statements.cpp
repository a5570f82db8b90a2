#include <algorithm>

#include "chat/jinja/evaluator.hpp"
#include "chat/jinja/scopes.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

constexpr std::uint32_t kDeepestScopes = 400;
constexpr std::ptrdiff_t kMostStack = 512 << 10;  // bytes of the machine's stack that a template may use

struct Macro : Callable {
  Macro(Budget& budget, const Stmt& stmt_, ScopeRef scope_, std::string name_)
      : Callable(budget, sizeof(Macro)), stmt(stmt_), scope(scope_), name(std::move(name_)) {}
  Value call(Evaluator& evaluator, const Args& args) const override {
    return evaluator.call_macro(stmt, scope, args, name);
  }
  Value attribute(Evaluator& evaluator, std::string_view attribute) const override {
    if (attribute == "name") return evaluator.string(name);
    if (attribute == "catch_kwargs") return Value::boolean(stmt.parameters.uses_kwargs);
    if (attribute == "catch_varargs") return Value::boolean(stmt.parameters.uses_varargs);
    if (attribute == "caller") return Value::boolean(stmt.parameters.uses_caller);
    return {};
  }
  const Stmt& stmt;
  ScopeRef scope;
  std::string name;
};

// At the end of a loop, clears its variable `loop`, because a template may keep `loop` in another variable. `items` points to values that
// end with the loop. `seen` holds the value last given to loop.changed(); if this value is the `loop` itself, the two would keep each
// other alive.
struct LoopEnd {
  const Loop& loop;
  ~LoopEnd() {
    loop.items = nullptr;
    loop.seen.reset();
  }
};

// Returns an address in the machine's stack. The address of a variable would not do, because sanitizers may put variables elsewhere.
const char* stack_place() { return static_cast<const char*>(__builtin_frame_address(0)); }

}  // namespace

Evaluator::Evaluator(const Program& program, Budget& budget, std::optional<LocalTime> now, std::uint64_t output_bytes)
    : program_(program), budget_(budget), now_(now), output_left_(output_bytes), stack_(stack_place()),
      globals_(program.names.size()) {
  // If the program does not use the name, the result is a number that no node has.
  const auto find = [&](std::string_view name) {
    const auto at = std::find(program.names.begin(), program.names.end(), name);
    return static_cast<Name>(at - program.names.begin());
  };
  loop_name_ = find("loop");
  caller_name_ = find("caller");
  varargs_name_ = find("varargs");
  kwargs_name_ = find("kwargs");
  for (Name name = 0; name < globals_.size(); ++name) {
    if (Value function = find_function(*this, program.names[name]); !function.is(Kind::undefined)) {
      globals_[name] = std::move(function);
    }
  }
}

void Evaluator::define(std::string_view name, Value value) {
  const auto at = std::find(program_.names.begin(), program_.names.end(), name);
  if (at != program_.names.end()) globals_[static_cast<std::size_t>(at - program_.names.begin())] = std::move(value);
}

void Evaluator::check_stack() const {
  const std::ptrdiff_t used = stack_ - stack_place();
  if (used > kMostStack || used < -kMostStack) fail("the template recurses too deep", ErrorCode::over_budget);
}

Text Evaluator::run() {
  const ScopeGuard scope(*this, kNoScope);
  run(program_.body);
  return std::move(output_);
}

Value Evaluator::variable(Name name) {
  std::size_t looked_at = 0;
  for (std::uint32_t scope = scope_; scope != kNoScope; scope = scopes_[scope].parent) {
    const std::size_t first = scopes_[scope].first;
    const std::size_t end = scope + 1 < scopes_.size() ? scopes_[scope + 1].first : bindings_.size();
    looked_at += end - first + 1;
    for (std::size_t i = end; i > first; --i) {
      if (bindings_[i - 1].first != name) continue;
      budget_.spend(looked_at / 16);
      return bindings_[i - 1].second;
    }
  }
  budget_.spend(looked_at / 16);
  if (globals_[name]) return *globals_[name];
  return make_missing(budget_, fmt::format("'{}' is undefined", program_.names[name]));
}

void Evaluator::set(Name name, Value value) {
  for (std::size_t i = bindings_.size(); i > scopes_[scope_].first; --i) {
    if (bindings_[i - 1].first == name) {
      bindings_[i - 1].second = std::move(value);
      return;
    }
  }
  bindings_.emplace_back(name, std::move(value));
}

void Evaluator::write(std::string_view bytes, TextOrigin origin) {
  if (bytes.empty()) return;
  if (capture_ != nullptr) return capture_->add(bytes, origin);
  // If the origin changes, the Text begins a new run, which takes memory too.
  const std::size_t size = bytes.size() + (output_.extends(origin) ? 0 : 16);
  budget_.spend_on(bytes.size());
  if (size > output_left_) {
    fail("the template prints too much: RenderLimits::output_bytes", ErrorCode::over_budget);
  }
  output_left_ -= size;
  output_.append(bytes, origin);
}

void Evaluator::write(const Text& text) {
  text.for_each([&](std::string_view piece, TextOrigin origin) { write(piece, origin); });
}

void Evaluator::print(const Value& value) {
  if (value.is(Kind::string)) return write(value.text());
  Builder builder(budget_);
  append_string(*this, builder, value);
  write(builder.text());
}

Evaluator::Flow Evaluator::capture(const Body& body, Value& text) {
  Capture capture(*this);
  const Flow flow = run(body);
  if (flow == Flow::on) text = capture.finish();
  return flow;
}

Value Evaluator::filtered(const Expr* filters, Value value) {
  if (filters == nullptr) return value;
  const Value* outer = std::exchange(filter_input_, &value);
  Value result = eval(*filters);
  filter_input_ = outer;
  return result;
}

Evaluator::Flow Evaluator::run(const Body& body) {
  for (const Stmt* stmt : body) {
    try {
      if (const Flow flow = run(*stmt); flow != Flow::on) return flow;
    } catch (Failure& failure) {
      if (failure.line == 0) failure.line = stmt->line;
      if (failure.construct.empty()) failure.construct = describe(*stmt);
      throw;
    }
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::run(const Stmt& stmt) {
  budget_.spend(1);
  switch (stmt.kind) {
    case StmtKind::text: write(stmt.text, TextOrigin::from_template); break;
    case StmtKind::output: print(eval(*stmt.value)); break;
    case StmtKind::set: assign(stmt.target, eval(*stmt.value)); break;
    case StmtKind::set_block: {
      Value text;
      {
        const ScopeGuard scope(*this, scope_);
        if (const Flow flow = capture(stmt.bodies[0], text); flow != Flow::on) return flow;
        text = filtered(stmt.value, std::move(text));
      }
      assign(stmt.target, text);
      break;
    }
    case StmtKind::branch: return run_branch(stmt);
    case StmtKind::loop: return run_loop(stmt, iterate(budget_, eval(*stmt.value)), 0);
    case StmtKind::macro:
      set(stmt.name, Value::object(Kind::callable, std::make_shared<Macro>(
                         budget_, stmt, ScopeRef{scope_, scopes_[scope_].serial}, program_.names[stmt.name])));
      break;
    case StmtKind::call_block: {
      const Expr& expr = *stmt.value;
      const Value callee = eval(*expr.items[0]);
      Args args = eval_arguments(expr.arguments);
      args.keyword.emplace_back("caller", Value::object(Kind::callable, std::make_shared<Macro>(
                                              budget_, stmt, ScopeRef{scope_, scopes_[scope_].serial}, "caller")));
      print(call(callee, args));
      break;
    }
    case StmtKind::filter_block: {
      const ScopeGuard scope(*this, scope_);
      Value text;
      if (const Flow flow = capture(stmt.bodies[0], text); flow != Flow::on) return flow;
      print(filtered(stmt.value, std::move(text)));
      break;
    }
    case StmtKind::with: return run_with(stmt);
    case StmtKind::scope: {
      const ScopeGuard scope(*this, scope_);
      return run(stmt.bodies[0]);
    }
    case StmtKind::break_loop: return Flow::broken;
    case StmtKind::continue_loop: return Flow::continued;
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::run_branch(const Stmt& stmt) {
  for (std::size_t i = 0; i < stmt.bodies.size(); ++i) {
    if (i < stmt.tests.size() && !truth(eval(*stmt.tests[i]))) continue;
    check_stack();
    return run(stmt.bodies[i]);
  }
  return Flow::on;
}

// Runs a loop, and then, if necessary, its else body. The else body runs if the loop's body has run to its end for no item at all: there
// were no items, or `continue` or `break` left the body before its end for each item that was begun. (jinja2 translates loops to Python
// code that behaves in this way.) `break` and `continue` in the else body belong to the loop around this one.
Evaluator::Flow Evaluator::run_loop(const Stmt& stmt, const Values& values, std::uint32_t depth) {
  check_stack();
  const Values* items = &values;
  Values chosen;
  if (stmt.test != nullptr) {
    for (const Value& value : values) {
      const ScopeGuard scope(*this, scope_);
      assign(stmt.target, value);
      if (truth(eval(*stmt.test))) chosen.push_back(value);
    }
    items = &chosen;
  }
  bool finished = false;
  if (!items->empty()) {
    const auto loop = std::make_shared<Loop>(budget_, stmt, *items, depth, scope_);
    const LoopEnd end{*loop};
    const Value variable = Value::object(Kind::loop, loop);
    for (; loop->index < items->size(); ++loop->index) {
      budget_.spend(1);
      const ScopeGuard scope(*this, scope_);
      if (loop_name_ < globals_.size()) set(loop_name_, variable);
      assign(stmt.target, (*items)[loop->index]);
      const Flow flow = run(stmt.bodies[0]);
      if (flow == Flow::broken) break;
      finished = finished || flow == Flow::on;
    }
  }
  if (finished) return Flow::on;
  const ScopeGuard scope(*this, scope_);
  return run(stmt.bodies[1]);
}

Value Evaluator::loop_again(const Loop& loop, const Value& iterable) {
  if (loop.items == nullptr) fail("`loop` is used after its loop has ended");
  if (!loop.stmt.recursive) fail("loop() is called in a loop that is not marked 'recursive'");
  const Values values = iterate(budget_, iterable);
  const std::uint32_t outer = std::exchange(scope_, loop.scope);
  Capture capture(*this);
  // The result is not needed: the parser allows no break or continue in the else body of a recursive loop.
  static_cast<void>(run_loop(loop.stmt, values, loop.level + 1));
  scope_ = outer;
  return capture.finish();
}

Evaluator::Flow Evaluator::run_with(const Stmt& stmt) {
  Values values;
  for (const Expr* value : stmt.values) values.push_back(eval(*value));
  const ScopeGuard scope(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(stmt.targets[i], values[i]);
  return run(stmt.bodies[0]);
}

void Evaluator::assign(const Target& target, const Value& value) {
  if (target.is_tuple) {
    const Values values = iterate(budget_, value);
    if (values.size() != target.parts.size()) {
      fail(fmt::format("{} values for {} names", values.size(), target.parts.size()));
    }
    for (std::size_t i = 0; i < values.size(); ++i) assign(target.parts[i], values[i]);
    return;
  }
  if (!target.has_attribute) return set(target.name, value);
  const Value owner = variable(target.name);
  if (!owner.is(Kind::name_space)) {
    fail(fmt::format("cannot assign to an attribute of '{}', which is no namespace", program_.names[target.name]));
  }
  auto& attributes = owner.pointed<Namespace>().attributes;
  const std::string& name = program_.names[target.attribute];
  budget_.spend(1 + attributes.size() / 8);
  for (auto& [other, old] : attributes) {
    if (other == name) {
      old = value;
      return;
    }
  }
  budget_.take(sizeof attributes[0] * 2 + name.size());
  attributes.emplace_back(name, value);
}

Value Evaluator::make_namespace(std::vector<std::pair<std::string, Value>> attributes) {
  budget_.take(sizeof(Namespace) + 64 + attributes.size() * sizeof attributes[0] * 2);
  return Value::pointer(Kind::name_space, &namespaces_.emplace_back(Namespace{std::move(attributes)}));
}

Value Evaluator::call_macro(const Stmt& macro, const ScopeRef& ref, const Args& args, std::string_view name) {
  check_stack();
  budget_.spend(4);
  if (scopes_.size() > kDeepestScopes) fail("macros call each other too deep", ErrorCode::over_budget);
  if (ref.index >= scopes_.size() || scopes_[ref.index].serial != ref.serial) {
    fail(fmt::format("the block that defined the macro '{}' has ended", name), ErrorCode::unsupported);
  }
  const Parameters& p = macro.parameters;
  Values values(p.names.size());
  std::vector<bool> given(p.names.size());
  Values varargs;
  for (std::size_t i = 0; i < args.positional.size(); ++i) {
    if (i < values.size()) {
      values[i] = args.positional[i];
      given[i] = true;
    } else if (p.uses_varargs) {
      varargs.push_back(args.positional[i]);
    } else {
      fail(fmt::format("the macro '{}' takes at most {} arguments", name, values.size()));
    }
  }
  Members kwargs;
  Value caller = make_missing(budget_, "No caller defined");
  for (const auto& [key, value] : args.keyword) {
    const auto at = std::find_if(p.names.begin(), p.names.end(), [&, &key = key](Name n) { return program_.names[n] == key; });
    if (at != p.names.end()) {
      const auto i = static_cast<std::size_t>(at - p.names.begin());
      if (given[i]) fail(fmt::format("the macro '{}' is given '{}' twice", name, key));
      values[i] = value;
      given[i] = true;
    } else if (key == "caller" && p.uses_caller) {
      caller = value;
    } else if (p.uses_kwargs) {
      kwargs.emplace_back(string(key), value);
    } else {
      fail(fmt::format("the macro '{}' has no parameter '{}'", name, key));
    }
  }

  const ScopeGuard scope(*this, ref.index);
  if (p.uses_caller) set(caller_name_, caller);
  if (p.uses_varargs) set(varargs_name_, make_tuple(budget_, std::move(varargs)));
  if (p.uses_kwargs) set(kwargs_name_, make_dict(budget_, std::move(kwargs)));
  const std::size_t first_default = p.names.size() - p.defaults.size();
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    if (given[i]) {
      set(p.names[i], values[i]);
    } else if (i >= first_default) {
      set(p.names[i], eval(*p.defaults[i - first_default]));
    } else {
      set(p.names[i], make_missing(budget_, fmt::format("parameter '{}' was not provided", program_.names[p.names[i]])));
    }
  }
  Value text;
  // The result is not needed: the parser allows no break or continue out of a macro's body.
  static_cast<void>(capture(macro.bodies[0], text));
  return text;
}

}  // namespace tessera::jinja
