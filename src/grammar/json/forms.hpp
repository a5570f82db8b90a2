// Makes the parts of JSON texts (numbers, strings, lists, objects) as forms and expressions of a grammar. White space always belongs to
// the part that comes after it. If it could belong to the part before it too, there would be two ways to read it.
#pragma once

#include <span>

#include <tessera/grammar/grammar.hpp>

#include "grammar/ir.hpp"

namespace tessera::grammar {

class JsonForms {
 public:
  JsonForms(Ir& ir, JsonSpace space, JsonNumbers numbers = JsonNumbers::any);

  [[nodiscard]] Regex space() const noexcept { return space_; }
  [[nodiscard]] Regex token(std::string_view text);          // optional white space, then `text`
  [[nodiscard]] Regex string(Regex content);                 // optional white space, then a string with this content
  [[nodiscard]] Regex key(Regex content);                    // optional white space, a string with this content, and a colon
  // Returns optional white space and a number. `content`: the expression of the numbers that satisfy `spec` and none of `excluded`. If
  // the option JsonNumbers is plain, the result allows fewer ways to write these numbers than `content` does.
  [[nodiscard]] Regex number(Regex content, const NumberSpec& spec, std::span<const NumberSpec> excluded = {});
  [[nodiscard]] bool plain_numbers() const noexcept { return numbers_ == JsonNumbers::plain; }
  [[nodiscard]] Regex any_text() const noexcept { return any_text_; }  // the content of any string
  [[nodiscard]] Regex comma() { return token(","); }
  [[nodiscard]] Form object(ObjectForm object);              // the object with its braces
  [[nodiscard]] Form list(ListForm list);                    // the list with its brackets
  [[nodiscard]] Form any_value();                            // one rule, made at the first call
  [[nodiscard]] Form any_object();
  [[nodiscard]] Form any_list();
  [[nodiscard]] Form document(Form value);                   // the value, with optional white space after it

 private:
  [[nodiscard]] Regex plain_number(const NumberSpec& spec, std::span<const NumberSpec> excluded);

  Ir& ir_;
  JsonNumbers numbers_;
  Regex space_, any_text_;
  std::uint32_t value_ = kNone;
};

}  // namespace tessera::grammar
