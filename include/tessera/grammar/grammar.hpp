// What a text may be: a JSON Schema, a regular expression, a grammar, or a composition of them. A Grammar says nothing of
// tokens; compiled with a vocabulary (compiled.hpp) it masks the tokens that a model may draw. docs/grammar.md has the
// syntax, what of JSON Schema is supported, and how it works.
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

// White space between JSON's tokens. any: as RFC 8259 allows. none: nowhere. blank: at most one blank, so that a model cannot
// go on with white space for ever.
enum class JsonSpace : std::int32_t { any = 0, none = 1, blank = 2 };

// How numbers are written. any: as JSON allows. plain: as a model should, so that it cannot go on with digits for ever.
// Integers have digits alone, other numbers at most 16 on each side of the point and two in an exponent; more where a bound
// has more, none behind those of multipleOf (and no limit in front where that is above 64 units of its last digit). `enum`
// and `const` are as the schema writes them; the numbers in dates and durations have nine digits at most.
enum class JsonNumbers : std::int32_t { any = 0, plain = 1 };

// Whether `format` is checked. assertion: in every draft. annotation: in none. by_draft: as the draft says, that is unless
// $schema names draft 2020-12, where it is an annotation. Formats that are not known are annotations always.
enum class JsonFormats : std::int32_t { by_draft = 0, assertion = 1, annotation = 2 };

// In which order an object's properties may come. any: as JSON means it. stated: as the schema lists them.
enum class JsonOrder : std::int32_t { any = 0, stated = 1 };

// What a keyword that is not supported does. refuse: an error that names it. ignore: it is left out, and listed.
enum class JsonUnsupported : std::int32_t { refuse = 0, ignore = 1 };

struct JsonSchemaOptions {
  JsonSpace space = JsonSpace::any;
  JsonOrder order = JsonOrder::any;
  JsonNumbers numbers = JsonNumbers::any;
  JsonFormats formats = JsonFormats::assertion;
  JsonUnsupported unsupported = JsonUnsupported::refuse;

  // Returns a text that is the same for equal options and for those alone: what a cache of grammars looks by.
  [[nodiscard]] std::string key() const;
};

// Limits of JSON Schema for a string, applied to a text that stands without quotes and escapes.
struct TextLimits {
  std::uint32_t min_length = 0, max_length = 0xFFFFFFFFu;  // characters
  std::string pattern{};  // found anywhere in the text, unless it is anchored; empty: any text
  std::string format{};   // of the whole text; one that is not known asks for nothing
};

// A cheap immutable handle. Errors: invalid_argument with the place in the text (a byte, a line, a path in the schema);
// unsupported with what is not; over_budget where it would take too long or too much memory.
class Grammar {
 public:
  Grammar() noexcept = default;  // an empty handle (docs/headers.md)
  // The whole text matches; ECMA-262 syntax, as far as it is regular.
  [[nodiscard]] static Result<Grammar> regex(std::string_view pattern) noexcept;
  [[nodiscard]] static Result<Grammar> literal(std::string_view text) noexcept;
  // One of these texts.
  [[nodiscard]] static Result<Grammar> choice(std::span<const std::string> texts) noexcept;
  // Any JSON text (RFC 8259).
  [[nodiscard]] static Result<Grammar> json(JsonSpace space = JsonSpace::any) noexcept;
  // JSON that a schema (draft 2020-12 or 7) accepts.
  [[nodiscard]] static Result<Grammar> json_schema(std::string_view schema, const JsonSchemaOptions& options = {}) noexcept;
  // Rules in the EBNF of docs/grammar.md, which GBNF files are too.
  [[nodiscard]] static Result<Grammar> ebnf(std::string_view text) noexcept;

  // Compositions. sequence: one after the other. repeat: min to max times, where max 0 is no limit.
  [[nodiscard]] static Result<Grammar> sequence(std::span<const Grammar> parts) noexcept;
  [[nodiscard]] static Result<Grammar> alternatives(std::span<const Grammar> parts) noexcept;
  [[nodiscard]] static Result<Grammar> sequence(std::initializer_list<Grammar> parts) noexcept {
    return sequence({parts.begin(), parts.size()});
  }
  [[nodiscard]] static Result<Grammar> alternatives(std::initializer_list<Grammar> parts) noexcept {
    return alternatives({parts.begin(), parts.size()});
  }
  [[nodiscard]] static Result<Grammar> repeat(const Grammar& part, std::uint32_t min, std::uint32_t max) noexcept;
  // Any text up to and with the first of the triggers: what stands before a tool call.
  [[nodiscard]] static Result<Grammar> until(std::span<const std::string> triggers) noexcept;
  // Any text that has none of them.
  [[nodiscard]] static Result<Grammar> without(std::span<const std::string> triggers) noexcept;

  // Any text that has none of the triggers and keeps the limits. Errors: invalid_argument where no text does; unsupported: a
  // pattern or format that is not regular.
  [[nodiscard]] static Result<Grammar> text(const TextLimits& limits, std::span<const std::string> triggers) noexcept;

  // With JsonUnsupported::ignore: what was left out, each as path and keyword.
  [[nodiscard]] std::span<const std::string> ignored() const noexcept;

  [[nodiscard]] const grammar::Ir* ir() const noexcept { return ir_.get(); }  // for the library itself; nullptr: empty

 private:
  explicit Grammar(std::shared_ptr<const grammar::Ir> ir) noexcept : ir_(std::move(ir)) {}
  template <class Fn>
  static Result<Grammar> make(Fn&& fill) noexcept;
  std::shared_ptr<const grammar::Ir> ir_;
};

}  // namespace tessera
