#include "grammar/json/forms.hpp"

#include <array>
#include <utility>

namespace tessera::grammar {

JsonForms::JsonForms(Ir& ir, JsonSpace space) : ir_(ir) {
  RegexStore& r = ir.regexes;
  ByteSet spaces;
  for (const char c : std::string_view(" \t\n\r")) spaces.add(static_cast<unsigned char>(c));
  space_ = RegexStore::kEpsilon;
  switch (space) {
    case JsonSpace::any: space_ = r.star(r.bytes(spaces)); break;
    case JsonSpace::none: break;
    case JsonSpace::blank: space_ = r.repeat(r.literal(" "), 0, 1); break;
  }
  any_text_ = r.star(r.character(any_char(), Spelling::json));
}

Regex JsonForms::token(std::string_view text) { return ir_.regexes.concat(space_, ir_.regexes.literal(text)); }

Regex JsonForms::string(Regex content) {
  RegexStore& r = ir_.regexes;
  const std::array parts{token("\""), content, r.literal("\"")};
  return r.concat(parts);
}

Regex JsonForms::key(Regex content) { return ir_.regexes.concat(string(content), token(":")); }
Regex JsonForms::number(const NumberSpec& spec) { return ir_.regexes.concat(space_, ir_.regexes.number(spec)); }

Form JsonForms::object(ObjectForm object) {
  object.separator = comma();
  return ir_.sequence({ir_.regex(token("{")), ir_.object(std::move(object)), ir_.regex(token("}"))});
}

Form JsonForms::list(ListForm list) {
  list.separator = comma();
  return ir_.sequence({ir_.regex(token("[")), ir_.list(std::move(list)), ir_.regex(token("]"))});
}

Form JsonForms::any_object() {
  ObjectForm form;
  form.others.push_back({key(any_text_), any_value()});
  return object(std::move(form));
}

Form JsonForms::any_list() { return list({.prefix = {}, .rest = any_value()}); }

Form JsonForms::any_value() {
  if (value_ == kNone) {
    value_ = ir_.add_rule();
    RegexStore& r = ir_.regexes;
    const std::array scalars{string(any_text_), number({}), token("true"), token("false"), token("null")};
    const std::array parts{ir_.regex(r.alternative(scalars)), any_object(), any_list()};
    ir_.define(value_, ir_.alternative(parts));
  }
  return ir_.rule(value_);
}

Form JsonForms::document(Form value) { return ir_.sequence({value, ir_.regex(space_)}); }

}  // namespace tessera::grammar
