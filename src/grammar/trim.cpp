#include "grammar/trim.hpp"

#include <algorithm>

namespace tessera::grammar {

namespace {

using Kind = ProgramNode::Kind;

// Finds the rules that have any text, or those that have the empty text. Repeats rounds over all rules until nothing changes.
class Solver {
 public:
  enum class Question : std::uint8_t { any_text, empty_text };

  Solver(Program& program, Question question) : p_(program), question_(question), yes_(program.rules.size()) {
    if (question == Question::any_text) {
      for (const Regex r : p_.terminals) terminals_.push_back(!p_.regexes.is_empty(r));
    } else {
      terminals_.assign(p_.terminals.size(), false);
    }
    for (bool changed = true; changed;) {
      changed = false;
      // Goes backwards, because called rules mostly have higher ids than their callers.
      for (auto r = static_cast<std::uint32_t>(p_.rules.size()); r-- > 0;) {
        if (yes_[r] || p_.rules[r].start == kNone || !solve(p_.rules[r].start)) continue;
        yes_[r] = true;
        changed = true;
      }
      work_ += p_.nodes.size();
      if (work_ > 20'000'000) out_of_fuel("its rules depend on each other in too long a chain");
    }
  }

  [[nodiscard]] bool has(Symbol s) const { return s.call ? yes_[s.id] : terminals_[s.id]; }

 private:
  bool solve(std::uint32_t start) {
    const ProgramNode& node = p_.nodes[start];
    if (node.kind == Kind::list_start) {
      const ProgramList& list = p_.lists[node.index];
      if (list.min > list.max) return false;
      if (question_ == Question::empty_text && list.separator != kNone && list.min > 1) return false;
      std::uint32_t count = 0;
      while (count < list.min && count < list.prefix.size() && has(list.prefix[count])) ++count;
      if (count >= list.min) return true;
      return count >= list.prefix.size() && list.rest.id != kNone && has(list.rest);
    }
    if (node.kind == Kind::object_start) {
      const ProgramObject& object = p_.objects[node.index];
      if (question_ == Question::empty_text) {
        if (object.min > 0) return false;
        return std::none_of(object.properties.begin(), object.properties.end(), [](const auto& m) { return m.required; });
      }
      std::size_t possible = 0, required = 0;
      bool others = false;
      for (const auto& m : object.properties) {
        const bool ok = member(m);
        if (m.required && !ok) return false;
        possible += ok;
        required += m.required;
      }
      for (const auto& m : object.others) others = others || member(m);
      return required <= object.max && object.min <= object.max && (others || possible >= object.min);
    }
    // For a plain node: searches for a node where the rule may end, along edges whose symbols have a text.
    std::vector<std::uint32_t> stack{start};
    mark(start);
    bool found = false;
    while (!stack.empty()) {
      const ProgramNode& at = p_.nodes[stack.back()];
      stack.pop_back();
      if (at.final) found = true;
      for (const auto& edge : at.edges) {
        if (has(edge.symbol) && mark(edge.target)) stack.push_back(edge.target);
      }
    }
    ++round_;
    return found;
  }

  [[nodiscard]] bool member(const ProgramObject::Member& m) const {
    return terminals_[m.key] && has(p_.nodes[m.value].edges[0].symbol);
  }

  bool mark(std::uint32_t node) {
    if (marks_.empty()) marks_.assign(p_.nodes.size(), kNone);
    if (marks_[node] == round_) return false;
    marks_[node] = round_;
    return true;
  }

  Program& p_;
  Question question_;
  std::vector<bool> yes_, terminals_;
  std::vector<std::uint32_t> marks_;
  std::uint32_t round_ = 0;
  std::size_t work_ = 0;
};

void trim_list(ProgramList& list, const Solver& texts, const Solver& empties) {
  for (std::size_t i = 0; i < list.prefix.size(); ++i) {
    if (texts.has(list.prefix[i])) continue;
    list.prefix.resize(i);  // item i cannot occur, so no later item can
    list.max = std::min(list.max, static_cast<std::uint32_t>(i));
    list.rest.id = kNone;
  }
  if (list.rest.id != kNone && !texts.has(list.rest)) list.rest.id = kNone;
  if (list.rest.id == kNone) list.max = std::min(list.max, static_cast<std::uint32_t>(list.prefix.size()));
  if (list.separator == kNone && list.prefix.empty() && list.rest.id != kNone && list.rest.call && empties.has(list.rest)) {
    list.min = 0;
  }
  list.cap = list.max != kUnlimited ? list.max : std::max(list.min, static_cast<std::uint32_t>(list.prefix.size()));
}

void trim_object(Program& p, ProgramObject& object, const Solver& texts) {
  const auto impossible = [&](const ProgramObject::Member& m) {
    return p.regexes.is_empty(p.terminals[m.key]) || !texts.has(p.nodes[m.value].edges[0].symbol);
  };
  std::erase_if(object.properties, impossible);
  std::erase_if(object.others, impossible);
  object.required = static_cast<std::uint32_t>(
      std::count_if(object.properties.begin(), object.properties.end(), [](const auto& m) { return m.required; }));
  if (object.others.empty() && object.max >= object.properties.size()) object.max = kUnlimited;
  if (object.min <= object.required) object.min = 0;
  object.cap = object.max != kUnlimited ? object.max : object.min;
}

// Keeps only edges from which the end of the rule can be reached. Searches backwards from the ends.
void trim_nodes(Program& p, const Solver& texts) {
  std::vector<std::vector<std::uint32_t>> before(p.nodes.size());
  std::vector<std::uint32_t> stack;
  std::vector<bool> live(p.nodes.size());
  for (std::uint32_t n = 0; n < p.nodes.size(); ++n) {
    if (p.nodes[n].kind != Kind::plain) continue;
    for (const auto& edge : p.nodes[n].edges) {
      if (texts.has(edge.symbol)) before[edge.target].push_back(n);
    }
    if (p.nodes[n].final) {
      live[n] = true;
      stack.push_back(n);
    }
  }
  while (!stack.empty()) {
    const std::uint32_t n = stack.back();
    stack.pop_back();
    for (const std::uint32_t from : before[n]) {
      if (live[from]) continue;
      live[from] = true;
      stack.push_back(from);
    }
  }
  for (ProgramNode& node : p.nodes) {
    if (node.kind != Kind::plain) continue;
    std::erase_if(node.edges, [&](const auto& edge) { return !texts.has(edge.symbol) || !live[edge.target]; });
  }
}

}  // namespace

void trim(Program& p) {
  Solver empties(p, Solver::Question::empty_text);
  for (std::uint32_t r = 0; r < p.rules.size(); ++r) p.rules[r].nullable = empties.has({r, true});
  const Solver texts(p, Solver::Question::any_text);
  // The nullable rules were found before terminals without texts were removed. The removal does not change which rules are nullable.
  if (!texts.has({p.start, true})) {
    fail(ErrorCode::invalid_argument, "the grammar allows no text at all: what it asks for contradicts itself");
  }
  for (ProgramList& list : p.lists) trim_list(list, texts, empties);
  for (ProgramObject& object : p.objects) trim_object(p, object, texts);
  trim_nodes(p, texts);
}

}  // namespace tessera::grammar
