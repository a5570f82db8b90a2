// A grammar ready to be matched: rules as small automata whose edges read a terminal (a regular expression) or call a
// rule. Every part of it can be completed: what leads nowhere has been taken out, so that matching never meets a dead end.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/ir.hpp"

namespace tessera::grammar {

// A terminal, or a rule to call.
struct Symbol {
  std::uint32_t id;
  bool call;
  bool operator==(const Symbol&) const noexcept = default;
};

struct ProgramList {
  std::vector<Symbol> prefix;
  Symbol rest{kNone, false};
  std::uint32_t min = 0, max = kUnlimited, cap = 0;  // cap: a count is kept up to it
  std::uint32_t separator = kNone;                   // a terminal
  std::uint32_t item = kNone, after = kNone;         // nodes: before an item, behind one

  [[nodiscard]] const Symbol* at(std::uint32_t count) const noexcept {  // the item that may follow `count` others
    if (count >= max) return nullptr;
    if (count < prefix.size()) return &prefix[count];
    return rest.id == kNone ? nullptr : &rest;
  }
};

struct ProgramObject {
  struct Member {
    std::uint32_t key;    // a terminal
    std::uint32_t value;  // the node that reads the value
    bool required = false;
    ObjectForm::Place place = ObjectForm::Place::ordered;
    [[nodiscard]] bool anywhere() const noexcept { return place == ObjectForm::Place::anywhere; }
  };
  std::vector<Member> properties, others;
  std::uint32_t min = 0, max = kUnlimited, cap = 0, required = 0;  // required: how many are
  std::uint32_t separator = kNone;
  ObjectForm::Order order = ObjectForm::Order::any;
  std::uint32_t key = kNone, after = kNone;  // nodes: before a member, behind one
};

struct ProgramNode {
  enum class Kind : std::uint8_t { plain, list_start, list_item, list_after, object_start, object_key, object_after, object_value };
  struct Edge {
    Symbol symbol;
    std::uint32_t target;
  };
  Kind kind = Kind::plain;
  bool final = false;              // the rule may end here; of plain nodes
  std::uint32_t index = 0;         // of the list or object
  std::vector<Edge> edges;         // of plain and object_value nodes
};

struct ProgramRule {
  std::uint32_t start = kNone;  // a node
  bool nullable = false;
};

struct Program {
  RegexStore regexes;
  std::vector<Regex> terminals;
  std::vector<ProgramNode> nodes;
  std::vector<ProgramRule> rules;
  std::vector<ProgramList> lists;
  std::vector<ProgramObject> objects;
  std::uint32_t start = 0;  // a rule

  // Fails where the grammar has no text at all.
  [[nodiscard]] static Program make(const Ir& ir);
  [[nodiscard]] bool ends(std::uint32_t node) const noexcept {  // nothing but the rule's end
    return nodes[node].kind == ProgramNode::Kind::plain && nodes[node].final && nodes[node].edges.empty();
  }
};

}  // namespace tessera::grammar
