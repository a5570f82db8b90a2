#include "grammar/program.hpp"

#include <algorithm>

#include "grammar/trim.hpp"

namespace tessera::grammar {

namespace {

using Kind = ProgramNode::Kind;

class Lowering {
 public:
  explicit Lowering(const Ir& ir) : ir_(ir) { out_.regexes = ir.regexes; }

  Program run() {
    out_.rules.resize(ir_.rules.size());
    for (std::uint32_t i = 0; i < ir_.rules.size(); ++i) {
      if (ir_.rules[i] != kNone) lower_rule(i, ir_.rules[i]);
    }
    const Symbol start = symbol(ir_.start, Wrap::always);
    out_.start = start.id;
    close();
    return std::move(out_);
  }

 private:
  enum class Wrap : std::uint8_t { if_needed, always };

  std::uint32_t node(Kind kind = Kind::plain, std::uint32_t index = 0) {
    if (out_.nodes.size() >= kMostNodes) out_of_fuel("it has too many parts");
    out_.nodes.push_back({.kind = kind, .index = index, .edges = {}});
    jumps_.emplace_back();
    return static_cast<std::uint32_t>(out_.nodes.size() - 1);
  }

  std::uint32_t terminal(Regex r) {
    if (const auto found = terminals_.find(r); found != kNone) return found;
    const auto id = static_cast<std::uint32_t>(out_.terminals.size());
    out_.terminals.push_back(r);
    terminals_.add(r, id);
    return id;
  }

  void lower_rule(std::uint32_t rule, Form body) {
    const std::uint32_t start = node();
    out_.rules[rule].start = start;
    const Ir::Expr& expr = ir_.exprs[body];
    if (expr.kind == Ir::Expr::Kind::list) {
      out_.nodes[start].kind = Kind::list_start;
      out_.nodes[start].index = list(expr.index);
      return;
    }
    if (expr.kind == Ir::Expr::Kind::object) {
      out_.nodes[start].kind = Kind::object_start;
      out_.nodes[start].index = object(expr.index);
      return;
    }
    const std::uint32_t end = node();
    out_.nodes[end].final = true;
    lower(body, start, end, 0);
  }

  std::uint32_t wrap(Form form) {
    out_.rules.emplace_back();
    const auto id = static_cast<std::uint32_t>(out_.rules.size() - 1);
    lower_rule(id, form);
    return id;
  }

  // Returns the form as a symbol. A terminal that may match the empty text becomes a rule, because only rules can be nullable.
  Symbol symbol(Form form, Wrap how) {
    const Ir::Expr& expr = ir_.exprs[form];
    if (expr.kind == Ir::Expr::Kind::rule) return {expr.index, true};
    if (how == Wrap::if_needed && expr.kind == Ir::Expr::Kind::regex && !out_.regexes.nullable(expr.index)) {
      return {terminal(expr.index), false};
    }
    if (symbols_.size() < ir_.exprs.size()) symbols_.resize(ir_.exprs.size(), kNone);
    if (symbols_[form] == kNone) {
      const std::uint32_t id = wrap(form);
      symbols_[form] = id;
    }
    return {symbols_[form], true};
  }

  void edge(std::uint32_t from, Symbol symbol, std::uint32_t to) { out_.nodes[from].edges.push_back({symbol, to}); }

  void lower(Form form, std::uint32_t from, std::uint32_t to, unsigned depth) {
    if (depth > 1000) out_of_fuel("its rules are nested too deeply");
    const Ir::Expr& expr = ir_.exprs[form];
    switch (expr.kind) {
      case Ir::Expr::Kind::regex:
        if (out_.regexes.nullable(expr.index)) jumps_[from].push_back(to);
        if (expr.index != RegexStore::kEpsilon) edge(from, {terminal(expr.index), false}, to);
        return;
      case Ir::Expr::Kind::rule:
        edge(from, {expr.index, true}, to);
        return;
      case Ir::Expr::Kind::sequence: {
        std::uint32_t at = from;
        for (std::size_t i = 0; i < expr.parts.size(); ++i) {
          const std::uint32_t next = i + 1 == expr.parts.size() ? to : node();
          lower(expr.parts[i], at, next, depth + 1);
          at = next;
        }
        return;
      }
      case Ir::Expr::Kind::alternative:
        for (const Form part : expr.parts) lower(part, from, to, depth + 1);
        return;
      case Ir::Expr::Kind::list:
      case Ir::Expr::Kind::object:
        edge(from, symbol(form, Wrap::always), to);
        return;
    }
  }

  std::uint32_t list(std::uint32_t index) {
    const ListForm& form = ir_.lists[index];
    const auto id = static_cast<std::uint32_t>(out_.lists.size());
    out_.lists.emplace_back();
    ProgramList list;
    for (const Form item : form.prefix) list.prefix.push_back(symbol(item, Wrap::if_needed));
    if (form.rest != kNone) list.rest = symbol(form.rest, Wrap::if_needed);
    list.min = form.min;
    list.max = form.max;
    if (form.separator != RegexStore::kEpsilon) list.separator = terminal(form.separator);
    list.item = node(Kind::list_item, id);
    list.after = node(Kind::list_after, id);
    out_.lists[id] = std::move(list);
    return id;
  }

  std::uint32_t object(std::uint32_t index) {
    const ObjectForm& form = ir_.objects[index];
    const auto id = static_cast<std::uint32_t>(out_.objects.size());
    out_.objects.emplace_back();
    ProgramObject object;
    object.key = node(Kind::object_key, id);
    object.after = node(Kind::object_after, id);
    const auto member = [&](Regex key, Form value, bool required, ObjectForm::Place place) {
      const std::uint32_t at = node(Kind::object_value, id);
      const Symbol read = symbol(value, Wrap::if_needed);
      edge(at, read, object.after);
      return ProgramObject::Member{terminal(key), at, required, place};
    };
    for (const auto& p : form.properties) object.properties.push_back(member(p.key, p.value, p.required, p.place));
    for (const auto& o : form.others) object.others.push_back(member(o.key, o.value, false, ObjectForm::Place::ordered));
    object.min = form.min;
    object.max = form.max;
    object.order = form.order;
    object.separator = terminal(form.separator);
    out_.objects[id] = std::move(object);
    return id;
  }

  // Removes jumps (edges that read nothing). Each node gets the edges of all nodes that it can reach by jumps.
  void close() {
    std::vector<std::uint32_t> seen, mark(out_.nodes.size(), kNone);
    std::vector<std::vector<ProgramNode::Edge>> edges(out_.nodes.size());
    std::vector<bool> final(out_.nodes.size());
    std::size_t work = 0;
    for (std::uint32_t n = 0; n < out_.nodes.size(); ++n) {
      seen.assign(1, n);
      mark[n] = n;
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const ProgramNode& at = out_.nodes[seen[i]];
        if (at.final) final[n] = true;
        edges[n].insert(edges[n].end(), at.edges.begin(), at.edges.end());
        work += at.edges.size() + 1;
        if (work > 4 * kMostNodes) out_of_fuel("too many of its parts may be empty");
        for (const std::uint32_t next : jumps_[seen[i]]) {
          if (mark[next] == n) continue;
          mark[next] = n;
          seen.push_back(next);
        }
      }
    }
    for (std::uint32_t n = 0; n < out_.nodes.size(); ++n) {
      out_.nodes[n].edges = std::move(edges[n]);
      out_.nodes[n].final = final[n];
    }
  }

  static constexpr std::size_t kMostNodes = 1'000'000;

  const Ir& ir_;
  Program out_;
  std::vector<std::vector<std::uint32_t>> jumps_;  // [node]: the nodes that follow this node without reading anything
  SmallMap terminals_;
  std::vector<std::uint32_t> symbols_;  // [form]: the rule that was made of it
};

}  // namespace

Program Program::make(const Ir& ir) {
  Program program = Lowering(ir).run();
  trim(program);
  return program;
}

}  // namespace tessera::grammar
