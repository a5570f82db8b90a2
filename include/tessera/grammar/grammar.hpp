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

// White space between JSON's tokens. any: as RFC 8259 allows. none: nowhere. blank: at most one blank, so that a model cannot write white
// space for ever.
enum class JsonSpace : std::int32_t { any = 0, none = 1, blank = 2 };

// The spelling of numbers. any: as JSON allows. plain: as a model should write numbers, so that it cannot write digits for ever. Plain
// integers consist of digits only. Other plain numbers have at most 16 digits on each side of the point and two in an exponent. Exceptions:
//   - If a bound (minimum, maximum) has more digits, a number may have as many digits as the bound.
//   - multipleOf sets the number of digits after the point. If multipleOf is above 64 units of its last digit (0.65 is 65 units), the
//     digits before the point have no limit.
//   - `enum` and `const` are as the schema writes them.
//   - Numbers in dates and durations have at most nine digits.
enum class JsonNumbers : std::int32_t { any = 0, plain = 1 };

// The effect of the keyword `format`. assertion: strings must have the format. annotation: the keyword has no effect. by_draft: annotation
// if $schema names JSON Schema's draft 2020-12, assertion otherwise. Unknown formats have no effect.
enum class JsonFormats : std::int32_t { by_draft = 0, assertion = 1, annotation = 2 };

// The order of an object's properties. any: as JSON means it. stated: as the schema lists them.
enum class JsonOrder : std::int32_t { any = 0, stated = 1 };

// The effect of a keyword that is not supported. refuse: an error that names it. ignore: it is left out, and listed in ignored().
enum class JsonUnsupported : std::int32_t { refuse = 0, ignore = 1 };

struct JsonSchemaOptions {
  JsonSpace space = JsonSpace::any;
  JsonOrder order = JsonOrder::any;
  JsonNumbers numbers = JsonNumbers::any;
  JsonFormats formats = JsonFormats::assertion;
  JsonUnsupported unsupported = JsonUnsupported::refuse;

  // Returns a text that is the same for equal options, and different for different ones: a key for a cache of grammars.
  [[nodiscard]] std::string key() const;
};

// The limits that JSON Schema's keywords minLength, maxLength, pattern and format set, for a text without quotes and escapes:
// Grammar::text().
struct TextLimits {
  std::uint32_t min_length = 0, max_length = 0xFFFFFFFFu;  // characters
  std::string pattern{};  // regular expression that occurs anywhere in the text, unless it is anchored; empty: any text
  std::string format{};   // format of the whole text; an unknown format allows every text
};

// A cheap immutable handle. Errors of the functions that make a grammar: invalid_argument (the place is a byte, a line, or a path in the
// schema); unsupported (the message names the part that is not supported); over_budget, making the grammar would take too long or too much
// memory.
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

  // Compose grammars. sequence: the parts one after the other. repeat: the part `min` to `max` times; `max` 0: no limit.
  [[nodiscard]] static Result<Grammar> sequence(std::span<const Grammar> parts) noexcept;
  [[nodiscard]] static Result<Grammar> alternatives(std::span<const Grammar> parts) noexcept;
  [[nodiscard]] static Result<Grammar> sequence(std::initializer_list<Grammar> parts) noexcept {
    return sequence({parts.begin(), parts.size()});
  }
  [[nodiscard]] static Result<Grammar> alternatives(std::initializer_list<Grammar> parts) noexcept {
    return alternatives({parts.begin(), parts.size()});
  }
  [[nodiscard]] static Result<Grammar> repeat(const Grammar& part, std::uint32_t min, std::uint32_t max) noexcept;
  // Allows any text that ends with a trigger and has no earlier trigger: for the text before a tool call, and the call's marker.
  [[nodiscard]] static Result<Grammar> until(std::span<const std::string> triggers) noexcept;
  // Allows any text without the triggers.
  [[nodiscard]] static Result<Grammar> without(std::span<const std::string> triggers) noexcept;

  // Allows any text that keeps the limits and contains no trigger. Errors: invalid_argument, no text keeps the limits; unsupported, a
  // pattern or format that is not regular.
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
