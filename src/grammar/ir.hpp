// A grammar while it is built: forms that refer to regular expressions, to rules, and to each other. A regular part stays one regular
// expression (one lexeme of the parser), whatever it was composed of; only the rest becomes rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/regex_store.hpp"

namespace tessera::grammar {

using Form = std::uint32_t;

// A list: `prefix` in its order, then any number of `rest`; between min and max items in all, with a separator between them.
struct ListForm {
  std::vector<Form> prefix;
  Form rest = kNone;  // kNone: the list ends behind the prefix
  std::uint32_t min = 0, max = kUnlimited;
  Regex separator = RegexStore::kEpsilon;
};

// An object: members with separators between them. A property occurs at most once. Exception: if the key of a property matches names that
// `others` match too, members of these names may come beside the property.
struct ObjectForm {
  enum class Order : std::uint8_t { any, stated };
  enum class Place : std::uint8_t { ordered, anywhere };  // anywhere: also in the stated order; these properties are the last
  struct Property {
    Regex key;  // everything between the member's beginning and its value
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
  std::uint32_t min = 0, max = kUnlimited;  // number of members
  Order order = Order::any;
  Regex separator = RegexStore::kEpsilon;
};

class [[gnu::visibility("hidden")]] Ir {
 public:
  // Make forms.
  Form regex(Regex r);
  Form rule(std::uint32_t id);  // a reference
  Form sequence(std::span<const Form> parts);
  Form sequence(std::initializer_list<Form> parts) { return sequence({parts.begin(), parts.size()}); }
  Form alternative(std::span<const Form> parts);
  Form repeat(Form body, std::uint32_t min, std::uint32_t max);
  Form list(ListForm list);
  Form object(ObjectForm object);

  std::uint32_t add_rule();  // has no body yet
  void define(std::uint32_t rule, Form body) { rules[rule] = body; }

  // Adds everything of another grammar, and returns its start.
  Form import(const Ir& other);

  struct Expr {
    enum class Kind : std::uint8_t { regex, rule, sequence, alternative, list, object };
    Kind kind;
    std::uint32_t index = 0;  // index of the expression, rule, list or object
    std::vector<Form> parts;
  };

  RegexStore regexes;
  std::vector<Expr> exprs;
  std::vector<Form> rules;
  std::vector<ListForm> lists;
  std::vector<ObjectForm> objects;
  Form start = kNone;
  std::vector<std::string> ignored;  // paths and keywords that a lenient schema left out

  static constexpr std::size_t kMostForms = 500'000;

 private:
  Form add(Expr expr);
  [[nodiscard]] bool is_regex(Form f) const noexcept { return exprs[f].kind == Expr::Kind::regex; }
};

}  // namespace tessera::grammar
