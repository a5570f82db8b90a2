// The parts of JSON texts, as forms of a grammar. White space belongs to the token behind it, so that reading white space never opens a
// second reading.
#pragma once

#include <span>

#include <tessera/grammar/grammar.hpp>

#include "grammar/ir.hpp"

namespace tessera::grammar {

class JsonForms {
 public:
  JsonForms(Ir& ir, JsonSpace space, JsonNumbers numbers = JsonNumbers::any);

  [[nodiscard]] Regex space() const noexcept { return space_; }
  [[nodiscard]] Regex token(std::string_view text);          // white space and the text
  [[nodiscard]] Regex string(Regex content);                 // white space and a string with this content
  [[nodiscard]] Regex key(Regex content);                    // white space, a string with this content, and the colon
  // Returns white space and `content`: the numbers of `spec` without the excluded ones, as far as JsonNumbers lets them be written.
  [[nodiscard]] Regex number(Regex content, const NumberSpec& spec, std::span<const NumberSpec> excluded = {});
  [[nodiscard]] bool plain_numbers() const noexcept { return numbers_ == JsonNumbers::plain; }
  [[nodiscard]] Regex any_text() const noexcept { return any_text_; }  // content of any string
  [[nodiscard]] Regex comma() { return token(","); }
  [[nodiscard]] Form object(ObjectForm object);              // with its braces
  [[nodiscard]] Form list(ListForm list);                    // with its brackets
  [[nodiscard]] Form any_value();                            // a rule, made once
  [[nodiscard]] Form any_object();
  [[nodiscard]] Form any_list();
  [[nodiscard]] Form document(Form value);                   // with white space behind

 private:
  [[nodiscard]] Regex plain_number(const NumberSpec& spec, std::span<const NumberSpec> excluded);

  Ir& ir_;
  JsonNumbers numbers_;
  Regex space_, any_text_;
  std::uint32_t value_ = kNone;
};

}  // namespace tessera::grammar
