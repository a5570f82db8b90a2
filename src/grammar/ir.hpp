// A grammar while it is built, before it becomes a Program. It consists of forms (numbered expressions of the grammar), which refer to
// regular expressions, to rules and to each other. Whatever is regular stays one regular expression, which the parser reads as one
// terminal, even if it was made of several parts. Only the rest becomes rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/regex_store.hpp"

namespace tessera::grammar {

using Form = std::uint32_t;

// A list: first the items of `prefix`, in order, then any number of items of the form `rest`. The list may end before all of the prefix
// was written, if it has at least `min` items. It has at most `max` items in all, with a separator between two items.
struct ListForm {
  std::vector<Form> prefix;
  Form rest = kNone;  // kNone: no items may follow the prefix
  std::uint32_t min = 0, max = kUnlimited;
  Regex separator = RegexStore::kEpsilon;
};

// An object: members with a separator between two of them. A member is one of `properties`, or one of `others` (members whose names the
// object does not list). Each property occurs at most once. Exception: if the key of a property also matches a key of `others`, further
// members with such names may occur beside the property.
struct ObjectForm {
  enum class Order : std::uint8_t { any, stated };
  // anywhere: the property may occur at any place even if the order is fixed; these properties come last in the list.
  enum class Place : std::uint8_t { ordered, anywhere };
  struct Property {
    Regex key;  // everything from the member's beginning to its value
    Form value;
    bool required = false;
    Place place = Place::ordered;
  };
  struct Other {
    Regex key;
    Form value;
  };
  std::vector<Property> properties;
  std::vector<Other> others;
  std::uint32_t min = 0, max = kUnlimited;  // least and largest number of members
  Order order = Order::any;
  Regex separator = RegexStore::kEpsilon;
};

class [[gnu::visibility("hidden")]] Ir {
 public:
  // Make forms, and return their ids.
  Form regex(Regex r);
  Form rule(std::uint32_t id);  // a reference to a rule
  Form sequence(std::span<const Form> parts);
  Form sequence(std::initializer_list<Form> parts) { return sequence({parts.begin(), parts.size()}); }
  Form alternative(std::span<const Form> parts);
  Form repeat(Form body, std::uint32_t min, std::uint32_t max);
  Form list(ListForm list);
  Form object(ObjectForm object);

  std::uint32_t add_rule();  // the rule has no body until define()
  void define(std::uint32_t rule, Form body) { rules[rule] = body; }

  // Copies all forms of another grammar into this one. Returns the copy of the other grammar's start.
  Form import(const Ir& other);

  struct Expr {
    enum class Kind : std::uint8_t { regex, rule, sequence, alternative, list, object };
    Kind kind;
    std::uint32_t index = 0;  // index of the expression, rule, list or object, as the kind says
    std::vector<Form> parts;
  };

  RegexStore regexes;
  std::vector<Expr> exprs;
  std::vector<Form> rules;
  std::vector<ListForm> lists;
  std::vector<ObjectForm> objects;
  Form start = kNone;
  std::vector<std::string> ignored;  // paths of schema keywords that were ignored, because the options allow it

  static constexpr std::size_t kMostForms = 500'000;

 private:
  Form add(Expr expr);
  [[nodiscard]] bool is_regex(Form f) const noexcept { return exprs[f].kind == Expr::Kind::regex; }
};

}  // namespace tessera::grammar
