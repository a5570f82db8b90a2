#include "chat/jinja/names.hpp"

#include "chat/jinja/budget.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera::jinja {
namespace {

enum class Reached : std::uint8_t { always, maybe };  // maybe: only if a branch is taken

class Check {
 public:
  explicit Check(const Program& program) : program_(program) {}

  void body(const Body& body, Reached reached) {
    for (const Stmt* stmt : body) statement(*stmt, reached);
  }

 private:
  void statement(const Stmt& stmt, Reached reached) {
    if (stmt.kind == StmtKind::branch) {
      for (const Expr* test : stmt.tests) expression(test, Reached::maybe);
      for (const Body& part : stmt.bodies) body(part, Reached::maybe);
      return;
    }
    expression(stmt.value, reached);
    expression(stmt.test, reached);
    for (const Expr* value : stmt.values) expression(value, reached);
    for (const Expr* value : stmt.parameters.defaults) expression(value, Reached::always);
    // The names in these bodies (of a loop or a macro, for example) are checked even inside of a branch. jinja2 checks them too, because it
    // compiles each such body in a frame of its own.
    for (const Body& part : stmt.bodies) body(part, Reached::always);
  }

  void expression(const Expr* expr, Reached reached) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::conditional) reached = Reached::maybe;
    if (reached == Reached::always && (expr->kind == ExprKind::filter || expr->kind == ExprKind::test)) {
      const std::string& name = program_.names[expr->name];
      const bool filter = expr->kind == ExprKind::filter;
      if (filter ? !is_filter(name) : !is_test(name)) {
        throw Failure{ErrorCode::unsupported,
                      fmt::format("there is no {} '{}'", filter ? "filter" : "test", detail::printable(name, 40)),
                      expr->line, describe(program_, *expr)};
      }
    }
    for (const Expr* item : expr->items) expression(item, reached);
    for (const Expr* argument : expr->arguments.positional) expression(argument, reached);
    for (const auto& [name, argument] : expr->arguments.keyword) expression(argument, reached);
    expression(expr->arguments.star, reached);
    expression(expr->arguments.star_star, reached);
  }

  const Program& program_;
};

}  // namespace

void check_names(const Program& program) { Check(program).body(program.body, Reached::always); }

}  // namespace tessera::jinja
