// A grammar that is ready to match. Rules are small automata whose edges read a terminal (a regular expression) or call a rule. Every part
// of it can be completed: parts that lead nowhere have been taken out, so matching never meets a dead end.
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
  std::uint32_t min = 0, max = kUnlimited, cap = 0;  // cap: counts above it are equal
  std::uint32_t separator = kNone;                   // a terminal
  std::uint32_t item = kNone, after = kNone;         // nodes: before an item, and behind one

  [[nodiscard]] const Symbol* at(std::uint32_t count) const noexcept {  // the item that may follow `count` other items
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
  std::uint32_t min = 0, max = kUnlimited, cap = 0, required = 0;  // required: number of required properties
  std::uint32_t separator = kNone;
  ObjectForm::Order order = ObjectForm::Order::any;
  std::uint32_t key = kNone, after = kNone;  // nodes: before a member, and behind one
};

struct ProgramNode {
  enum class Kind : std::uint8_t { plain, list_start, list_item, list_after, object_start, object_key, object_after, object_value };
  struct Edge {
    Symbol symbol;
    std::uint32_t target;
  };
  Kind kind = Kind::plain;
  bool final = false;              // for plain nodes: the rule may end here
  std::uint32_t index = 0;         // index of the list or object
  std::vector<Edge> edges;         // edges of plain and object_value nodes
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

  // Fails if the grammar allows no text at all.
  [[nodiscard]] static Program make(const Ir& ir);
  [[nodiscard]] bool ends(std::uint32_t node) const noexcept {  // true: nothing but the rule's end may follow
    return nodes[node].kind == ProgramNode::Kind::plain && nodes[node].final && nodes[node].edges.empty();
  }
};

}  // namespace tessera::grammar
