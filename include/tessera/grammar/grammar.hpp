// A Grammar says what a text may be: a JSON Schema, a regular expression, EBNF, or a composition of grammars. A Grammar does not know
// tokens. Compile it with a vocabulary (compiled.hpp) to restrict the tokens that a model may draw. docs/explanation/grammar.md has the
// syntax, the supported part of JSON Schema, and how grammars work.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>

namespace tessera {

namespace grammar {
class Ir;
}

// The white space that a JSON text may have between its tokens (brackets, commas, values). any: as RFC 8259 allows. none: nowhere. blank:
// at most one blank at each place, so that a model cannot write white space for ever.
enum class JsonSpace : std::int32_t { any = 0, none = 1, blank = 2 };

// Says how numbers may be written. any: as JSON allows. plain: the number of digits is limited, so that a model cannot write digits for ever. A
// number has at most 16 digits before the point, 16 after it, and two in an exponent. An integer has no point and no exponent. Exceptions
// from `plain`:
//   - If both bounds (minimum and maximum) are given, the longer bound decides the number of digits before the point.
//   - If a bound has 16 digits or more on one side of the point, a number may have one digit more than the bound on this side.
//   - multipleOf decides the number of digits after the point. If multipleOf is more than 64 units of its last digit (0.65 is 65 units
//     of 0.01), the number of digits before the point has no limit.
//   - Values of `enum` and `const` are written as in the schema.
//   - Numbers in dates and durations have at most nine digits.
enum class JsonNumbers : std::int32_t { any = 0, plain = 1 };

// The effect of JSON Schema's keyword `format`. assertion: strings must have the format. annotation: the keyword has no effect. by_draft:
// annotation if $schema names the draft 2020-12, otherwise assertion. A format whose name is unknown never has an effect.
enum class JsonFormats : std::int32_t { by_draft = 0, assertion = 1, annotation = 2 };

// The order of an object's properties. any: in every order, as JSON means it. stated: in the order in which the schema lists them.
enum class JsonOrder : std::int32_t { any = 0, stated = 1 };

// Says what happens to a keyword that is not supported. refuse: an error that names the keyword. ignore: the keyword has no effect, and
// ignored() lists it.
enum class JsonUnsupported : std::int32_t { refuse = 0, ignore = 1 };

struct JsonSchemaOptions {
  JsonSpace space = JsonSpace::any;
  JsonOrder order = JsonOrder::any;
  JsonNumbers numbers = JsonNumbers::any;
  JsonFormats formats = JsonFormats::assertion;
  JsonUnsupported unsupported = JsonUnsupported::refuse;

  // Returns a text for the key of a cache of grammars. Two JsonSchemaOptions have the same text exactly if they are equal.
  [[nodiscard]] std::string key() const;
};

// Limits of a text, for Grammar::text(). They mean the same as JSON Schema's minLength, maxLength, pattern and format, but the text is
// plain: it has no quotes and no escapes.
struct TextLimits {
  std::uint32_t min_length = 0, max_length = 0xFFFFFFFFu;  // characters
  std::string pattern{};  // regular expression that occurs anywhere in the text, unless it is anchored; empty: any text
  std::string format{};   // format of the whole text; an unknown format allows every text
};

// A set of texts that are allowed, as a cheap immutable handle. Errors of all functions that make a grammar: invalid_argument (the place is
// a byte, a line, or a path in the schema); unsupported (the message names the part that is not supported); over_budget, making the grammar
// would take too much time or memory.
//
//   auto think = Grammar::until(std::vector<std::string>{"</think>"});
//   auto answer = Grammar::json_schema(R"({"type": "object", "properties": {"age": {"type": "integer"}}})");
//   auto both = Grammar::sequence({*think, *answer});
class Grammar {
 public:
  Grammar() noexcept = default;  // an empty handle (docs/headers.md)
  // Allows the texts that the pattern matches from end to end. Syntax: ECMA-262, as far as it is regular.
  [[nodiscard]] static Result<Grammar> regex(std::string_view pattern) noexcept;
  [[nodiscard]] static Result<Grammar> literal(std::string_view text) noexcept;
  // Allows each of these texts.
  [[nodiscard]] static Result<Grammar> choice(std::span<const std::string> texts) noexcept;
  // Allows any JSON text (RFC 8259).
  [[nodiscard]] static Result<Grammar> json(JsonSpace space = JsonSpace::any) noexcept;
  // Allows the JSON texts that a schema accepts. Supported drafts of JSON Schema: 2020-12, 7, 6 and 4.
  [[nodiscard]] static Result<Grammar> json_schema(std::string_view schema, const JsonSchemaOptions& options = {}) noexcept;
  // Allows the texts of rules in the EBNF of docs/explanation/grammar.md, which includes GBNF.
  [[nodiscard]] static Result<Grammar> ebnf(std::string_view text) noexcept;

  // Compose grammars. sequence: allows a text of each part, one after the other. alternatives: allows a text of any one of the parts. repeat:
  // allows `min` to `max` texts of the part, one after the other; `max` 0: no upper limit.
  [[nodiscard]] static Result<Grammar> sequence(std::span<const Grammar> parts) noexcept;
  [[nodiscard]] static Result<Grammar> alternatives(std::span<const Grammar> parts) noexcept;
  [[nodiscard]] static Result<Grammar> sequence(std::initializer_list<Grammar> parts) noexcept {
    return sequence({parts.begin(), parts.size()});
  }
  [[nodiscard]] static Result<Grammar> alternatives(std::initializer_list<Grammar> parts) noexcept {
    return alternatives({parts.begin(), parts.size()});
  }
  [[nodiscard]] static Result<Grammar> repeat(const Grammar& part, std::uint32_t min, std::uint32_t max) noexcept;
  // Allows any text that ends with one of the triggers and has no trigger before that: text before a tool call, and the call's marker, for
  // example.
  [[nodiscard]] static Result<Grammar> until(std::span<const std::string> triggers) noexcept;
  // Allows any text without the triggers.
  [[nodiscard]] static Result<Grammar> without(std::span<const std::string> triggers) noexcept;

  // Allows any text that keeps the limits and contains no trigger. Errors: invalid_argument, no text can keep all limits; unsupported, the
  // pattern or the format is not regular.
  [[nodiscard]] static Result<Grammar> text(const TextLimits& limits, std::span<const std::string> triggers) noexcept;

  // Returns the keywords that JsonUnsupported::ignore left out, each with its path in the schema.
  [[nodiscard]] std::span<const std::string> ignored() const noexcept;

  [[nodiscard]] const grammar::Ir* ir() const noexcept { return ir_.get(); }  // for the library itself; nullptr: empty

 private:
  explicit Grammar(std::shared_ptr<const grammar::Ir> ir) noexcept : ir_(std::move(ir)) {}
  template <class Fn>
  static Result<Grammar> make(Fn&& fill) noexcept;
  std::shared_ptr<const grammar::Ir> ir_;
};

}  // namespace tessera
