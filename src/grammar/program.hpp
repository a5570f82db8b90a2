// A grammar in the form that matchers use. Each rule is a small automaton, whose edges read a terminal (a regular expression) or call a
// rule. Parts that no complete text can contain were removed (trim.hpp), so a matcher never comes to a point where no text can follow.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/ir.hpp"

namespace tessera::grammar {

// The symbol that an edge reads: a terminal (call is false) or a rule.
struct Symbol {
  std::uint32_t id;
  bool call;
  bool operator==(const Symbol&) const noexcept = default;
};

struct ProgramList {
  std::vector<Symbol> prefix;
  Symbol rest{kNone, false};
  std::uint32_t min = 0, max = kUnlimited, cap = 0;  // cap: items are counted up to this number; more make no difference
  std::uint32_t separator = kNone;                   // id of a terminal
  std::uint32_t item = kNone, after = kNone;         // ids of nodes: before an item, and after an item

  // Returns the item with this index; nullptr: the list cannot have one.
  [[nodiscard]] const Symbol* at(std::uint32_t count) const noexcept {
    if (count >= max) return nullptr;
    if (count < prefix.size()) return &prefix[count];
    return rest.id == kNone ? nullptr : &rest;
  }
};

struct ProgramObject {
  struct Member {
    std::uint32_t key;    // id of a terminal
    std::uint32_t value;  // id of the node that reads the value
    bool required = false;
    ObjectForm::Place place = ObjectForm::Place::ordered;
    [[nodiscard]] bool anywhere() const noexcept { return place == ObjectForm::Place::anywhere; }
  };
  std::vector<Member> properties, others;
  std::uint32_t min = 0, max = kUnlimited, cap = 0, required = 0;  // cap: as in ProgramList; required: number of required properties
  std::uint32_t separator = kNone;
  ObjectForm::Order order = ObjectForm::Order::any;
  std::uint32_t key = kNone, after = kNone;  // ids of nodes: before a member, and after a member
};

struct ProgramNode {
  enum class Kind : std::uint8_t { plain, list_start, list_item, list_after, object_start, object_key, object_after, object_value };
  struct Edge {
    Symbol symbol;
    std::uint32_t target;
  };
  Kind kind = Kind::plain;
  bool final = false;              // only for plain nodes: the rule may end here
  std::uint32_t index = 0;         // nodes list_...: index of the list in Program::lists; object_...: index in Program::objects
  std::vector<Edge> edges;         // only for plain and object_value nodes
};

struct ProgramRule {
  std::uint32_t start = kNone;  // id of a node
  bool nullable = false;
};

struct Program {
  RegexStore regexes;
  std::vector<Regex> terminals;
  std::vector<ProgramNode> nodes;
  std::vector<ProgramRule> rules;
  std::vector<ProgramList> lists;
  std::vector<ProgramObject> objects;
  std::uint32_t start = 0;  // id of a rule

  // Makes the program. Fails if the grammar does not allow any text.
  [[nodiscard]] static Program make(const Ir& ir);
  [[nodiscard]] bool ends(std::uint32_t node) const noexcept {  // returns whether the rule must end at this node
    return nodes[node].kind == ProgramNode::Kind::plain && nodes[node].final && nodes[node].edges.empty();
  }
};

}  // namespace tessera::grammar
