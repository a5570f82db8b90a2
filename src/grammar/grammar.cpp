#include <tessera/grammar/grammar.hpp>

#include <array>

#include <fmt/format.h>

#include "core/empty.hpp"
#include "grammar/ebnf.hpp"
#include "grammar/ir.hpp"
#include "grammar/json/formats.hpp"
#include "grammar/json/forms.hpp"
#include "grammar/json/schema.hpp"
#include "grammar/regex/pattern.hpp"
#include "core/utf8.hpp"

namespace tessera {

using namespace grammar;

namespace {

constexpr std::size_t kLongestText = std::size_t{16} << 20;

void check_text(std::string_view text, const char* what) {
  if (text.size() > kLongestText) {
    fail(ErrorCode::invalid_argument, fmt::format("{} of {} bytes; at most {} are read", what, text.size(), kLongestText));
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto step = detail::utf8_step(text.substr(at));
    if (step.kind != detail::Utf8Kind::valid) {
      fail(ErrorCode::invalid_argument, fmt::format("{} is not UTF-8", what), fmt::format("byte {}", at));
    }
    at += step.size;
  }
}

// Returns the expression of all UTF-8 texts in which none of the triggers occurs.
Regex without_triggers(RegexStore& r, std::span<const std::string> triggers) {
  std::vector<Regex> found;
  for (const std::string& trigger : triggers) {
    const std::array parts{RegexStore::kAll, r.literal(trigger), RegexStore::kAll};
    found.push_back(r.concat(parts));
  }
  const Regex any = r.star(r.character(any_char(), Spelling::utf8));
  return found.empty() ? any : r.both(any, r.negate(r.alternative(found)));
}

const Ir& ir_of(const Grammar& part) {
  if (part.ir() == nullptr) throw Failure{detail::empty_handle("Grammar")};
  return *part.ir();
}

void check_triggers(std::span<const std::string> triggers) {
  for (const std::string& trigger : triggers) {
    check_text(trigger, "a trigger");
    if (trigger.empty()) fail(ErrorCode::invalid_argument, "an empty trigger: it would be found at once");
  }
}

}  // namespace

template <class Fn>
Result<Grammar> Grammar::make(Fn&& fill) noexcept {
  return guard_fuel([&]() -> Result<Grammar> {
    auto ir = std::make_shared<Ir>();
    ir->start = fill(*ir);
    return Grammar(std::move(ir));
  });
}

Result<Grammar> Grammar::regex(std::string_view pattern) noexcept {
  return make([&](Ir& ir) {
    check_text(pattern, "a pattern");
    return ir.regex(parse_pattern(ir.regexes, pattern, {}));
  });
}

Result<Grammar> Grammar::literal(std::string_view text) noexcept {
  return make([&](Ir& ir) {
    check_text(text, "a text");
    return ir.regex(ir.regexes.literal(text));
  });
}

Result<Grammar> Grammar::choice(std::span<const std::string> texts) noexcept {
  return make([&](Ir& ir) {
    if (texts.empty()) fail(ErrorCode::invalid_argument, "a choice of nothing: give at least one text");
    for (const std::string& text : texts) check_text(text, "a choice");
    return ir.regex(ir.regexes.literals({texts.begin(), texts.end()}, Spelling::utf8));
  });
}

Result<Grammar> Grammar::json(JsonSpace space) noexcept {
  return make([&](Ir& ir) {
    JsonForms forms(ir, space);
    return forms.document(forms.any_value());
  });
}

Result<Grammar> Grammar::json_schema(std::string_view schema, const JsonSchemaOptions& options) noexcept {
  return make([&](Ir& ir) {
    check_text(schema, "a schema");
    return compile_schema(ir, schema, options);
  });
}

Result<Grammar> Grammar::ebnf(std::string_view text) noexcept {
  return make([&](Ir& ir) {
    check_text(text, "a grammar");
    return parse_ebnf(ir, text);
  });
}

Result<Grammar> Grammar::sequence(std::span<const Grammar> parts) noexcept {
  return make([&](Ir& ir) {
    std::vector<Form> forms;
    for (const Grammar& part : parts) forms.push_back(ir.import(ir_of(part)));
    return ir.sequence(forms);
  });
}

Result<Grammar> Grammar::alternatives(std::span<const Grammar> parts) noexcept {
  return make([&](Ir& ir) {
    if (parts.empty()) fail(ErrorCode::invalid_argument, "a choice of nothing: give at least one grammar");
    std::vector<Form> forms;
    for (const Grammar& part : parts) forms.push_back(ir.import(ir_of(part)));
    return ir.alternative(forms);
  });
}

Result<Grammar> Grammar::repeat(const Grammar& part, std::uint32_t min, std::uint32_t max) noexcept {
  return make([&](Ir& ir) {
    if (max == 0) max = kUnlimited;
    if (min > max) fail(ErrorCode::invalid_argument, fmt::format("a repetition of {} to {} times", min, max));
    return ir.repeat(ir.import(ir_of(part)), min, max);
  });
}

Result<Grammar> Grammar::until(std::span<const std::string> triggers) noexcept {
  return make([&](Ir& ir) {
    check_triggers(triggers);
    if (triggers.empty()) fail(ErrorCode::invalid_argument, "no trigger: give at least one");
    RegexStore& r = ir.regexes;
    // The expression matches the texts that end with a trigger and have no trigger before it.
    std::vector<Regex> ends, before;
    const Regex byte = r.bytes(ByteSet::all());
    for (const std::string& trigger : triggers) {
      ends.push_back(r.literal(trigger));
      const std::array parts{RegexStore::kAll, ends.back(), byte, RegexStore::kAll};
      before.push_back(r.concat(parts));
    }
    const Regex any = r.star(r.character(any_char(), Spelling::utf8));
    return ir.regex(r.both(r.concat(any, r.alternative(ends)), r.negate(r.alternative(before))));
  });
}

Result<Grammar> Grammar::without(std::span<const std::string> triggers) noexcept {
  return make([&](Ir& ir) {
    check_triggers(triggers);
    return ir.regex(without_triggers(ir.regexes, triggers));
  });
}

Result<Grammar> Grammar::text(const TextLimits& limits, std::span<const std::string> triggers) noexcept {
  return make([&](Ir& ir) {
    check_triggers(triggers);
    check_text(limits.pattern, "a pattern");
    RegexStore& r = ir.regexes;
    Regex text = without_triggers(r, triggers);
    if (limits.min_length > 0 || limits.max_length != kUnlimited) {
      text = r.both(text, r.repeat(r.character(any_char(), Spelling::utf8), limits.min_length, limits.max_length));
    }
    if (!limits.pattern.empty()) text = r.both(text, parse_pattern(r, limits.pattern, {.match = PatternOptions::Match::search}));
    if (const Format* format = find_format(limits.format)) {
      if (format->pattern.empty()) fail(ErrorCode::unsupported, fmt::format("the format '{}' is no regular language", format->name));
      text = r.both(text, parse_pattern(r, format->pattern, {}));
    }
    if (r.is_empty(text)) fail(ErrorCode::invalid_argument, "no text keeps all of the limits");
    return ir.regex(text);
  });
}

std::span<const std::string> Grammar::ignored() const noexcept {
  return ir_ == nullptr ? std::span<const std::string>() : ir_->ignored;
}

}  // namespace tessera
