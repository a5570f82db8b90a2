#include "grammar/ir.hpp"

#include <utility>

namespace tessera::grammar {

Form Ir::add(Expr expr) {
  if (exprs.size() >= kMostForms) out_of_fuel("it has too many parts");
  exprs.push_back(std::move(expr));
  return static_cast<Form>(exprs.size() - 1);
}

Form Ir::regex(Regex r) { return add({.kind = Expr::Kind::regex, .index = r, .parts = {}}); }
Form Ir::rule(std::uint32_t id) { return add({.kind = Expr::Kind::rule, .index = id, .parts = {}}); }

std::uint32_t Ir::add_rule() {
  if (rules.size() >= kMostForms) out_of_fuel("it has too many rules");
  rules.push_back(kNone);
  return static_cast<std::uint32_t>(rules.size() - 1);
}

Form Ir::sequence(std::span<const Form> given) {
  std::vector<Form> parts;
  for (const Form form : given) {
    std::vector<Form> inner = exprs[form].kind == Expr::Kind::sequence ? exprs[form].parts : std::vector<Form>{form};
    for (const Form part : inner) {
      if (!parts.empty() && is_regex(part) && is_regex(parts.back())) {
        parts.back() = regex(regexes.concat(exprs[parts.back()].index, exprs[part].index));
      } else {
        parts.push_back(part);
      }
    }
  }
  if (parts.empty()) return regex(RegexStore::kEpsilon);
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expr::Kind::sequence, .parts = std::move(parts)});
}

Form Ir::alternative(std::span<const Form> given) {
  std::vector<Regex> regular;
  std::vector<Form> parts;
  for (const Form form : given) {
    std::vector<Form> inner = exprs[form].kind == Expr::Kind::alternative ? exprs[form].parts : std::vector<Form>{form};
    for (const Form part : inner) {
      if (is_regex(part)) {
        regular.push_back(exprs[part].index);
      } else {
        parts.push_back(part);
      }
    }
  }
  if (!regular.empty() || parts.empty()) {
    const Regex r = regexes.alternative(regular);
    if (parts.empty()) return regex(r);
    if (r != RegexStore::kEmpty) parts.push_back(regex(r));
  }
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expr::Kind::alternative, .parts = std::move(parts)});
}

Form Ir::repeat(Form body, std::uint32_t min, std::uint32_t max) {
  if (min == 1 && max == 1) return body;
  if (max == 0) return regex(RegexStore::kEpsilon);
  if (is_regex(body)) return regex(regexes.repeat(exprs[body].index, min, max));
  return list({.prefix = {}, .rest = body, .min = min, .max = max});
}

Form Ir::list(ListForm form) {
  lists.push_back(std::move(form));
  return add({.kind = Expr::Kind::list, .index = static_cast<std::uint32_t>(lists.size() - 1), .parts = {}});
}

Form Ir::object(ObjectForm form) {
  objects.push_back(std::move(form));
  return add({.kind = Expr::Kind::object, .index = static_cast<std::uint32_t>(objects.size() - 1), .parts = {}});
}

Form Ir::import(const Ir& other) {
  if (exprs.size() + other.exprs.size() > kMostForms) out_of_fuel("it has too many parts");
  const auto form_base = static_cast<std::uint32_t>(exprs.size());
  const auto rule_base = static_cast<std::uint32_t>(rules.size());
  const auto list_base = static_cast<std::uint32_t>(lists.size());
  const auto object_base = static_cast<std::uint32_t>(objects.size());
  std::vector<Regex> done;
  const auto moved = [&](Regex r) { return regexes.import(other.regexes, r, done); };
  const auto shifted = [&](Form f) { return f == kNone ? kNone : f + form_base; };
  for (const Expr& from : other.exprs) {
    Expr expr = from;
    switch (expr.kind) {
      case Expr::Kind::regex: expr.index = moved(from.index); break;
      case Expr::Kind::rule: expr.index += rule_base; break;
      case Expr::Kind::list: expr.index += list_base; break;
      case Expr::Kind::object: expr.index += object_base; break;
      case Expr::Kind::sequence:
      case Expr::Kind::alternative: break;
    }
    for (Form& part : expr.parts) part = shifted(part);
    exprs.push_back(std::move(expr));
  }
  for (const Form body : other.rules) rules.push_back(shifted(body));
  for (ListForm list : other.lists) {
    for (Form& form : list.prefix) form = shifted(form);
    list.rest = shifted(list.rest);
    list.separator = moved(list.separator);
    lists.push_back(std::move(list));
  }
  for (ObjectForm object : other.objects) {
    for (auto& property : object.properties) {
      property.key = moved(property.key);
      property.value = shifted(property.value);
    }
    for (auto& member : object.others) {
      member.key = moved(member.key);
      member.value = shifted(member.value);
    }
    object.separator = moved(object.separator);
    objects.push_back(std::move(object));
  }
  ignored.insert(ignored.end(), other.ignored.begin(), other.ignored.end());
  return shifted(other.start);
}

}  // namespace tessera::grammar
