#include <tessera/extend/chat/tool_grammar.hpp>

#include <algorithm>

#include "chat/calls/arguments.hpp"
#include "chat/calls/compose.hpp"
#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "json/spelling.hpp"

namespace tessera {

using namespace calls;

namespace {

struct Tool {
  std::string name;
  Json schema;
  std::optional<JsonUnsupported> unsupported{};  // nullopt: as the options say
};

std::vector<Tool> callable(std::span<const Json> tools, const std::string& only) {
  std::vector<Tool> out;
  for (const Json& tool : tools) {
    const Json* function = tool.find("function");
    if (function == nullptr) function = &tool;
    const Json* name = function->find("name");
    if (name == nullptr || name->string() == nullptr || name->string()->empty()) {
      throw Refusal{detail::make_error(ErrorCode::invalid_argument, "tool {} has no name", &tool - tools.data())};
    }
    if (only.empty() || *name->string() == only) out.push_back({*name->string(), parameters_of(*function)});
  }
  if (!out.empty()) return out;
  if (tools.empty()) throw Refusal{detail::make_error(ErrorCode::invalid_argument, "there are no tools to call")};
  throw Refusal{detail::make_error(ErrorCode::not_found, "no tool is called '{}'", detail::printable(only))};
}

class Calls {
 public:
  Calls(const OutputFormat& format, std::vector<Tool> tools, const ToolGrammarOptions& options)
      : format_(format), tools_(std::move(tools)), options_(options) {
    for (const OutputRegion& region : format.regions) {
      if (region.kind == RegionKind::calls) regions_.push_back(&region);
    }
    if (regions_.empty()) {
      throw Refusal{detail::make_error(ErrorCode::unsupported, "the output format '{}' has no tool calls", format.name)};
    }
  }

  // Makes sure that the schema of each tool can be expressed in the format's call syntax. If a schema cannot be expressed, tries the
  // schema without its unsupported keywords, and then a looser schema (loosened()). If even that fails, drops the tool. Returns one warning
  // for each tool whose schema is not followed completely. Fails if no tool is left.
  std::vector<std::string> loosen() {
    std::vector<std::string> warnings;
    std::vector<Tool> kept;
    std::optional<Refusal> first;
    for (const Tool& tool : tools_) {
      const auto tried = [&](Tool as, JsonUnsupported unsupported) -> std::optional<Error> {
        as.unsupported = unsupported;
        try {
          for (const OutputRegion* region : regions_) static_cast<void>(call(*region, as));
          kept.push_back(std::move(as));
          return std::nullopt;
        } catch (Refusal& refusal) {
          return std::move(refusal.error);
        }
      };
      const auto refused = tried(tool, options_.json.unsupported);
      if (!refused) continue;
      const bool held = !tried(tool, JsonUnsupported::ignore) || !tried({.name = tool.name, .schema = loosened(tool.schema)}, JsonUnsupported::ignore);
      if (!held && !first) first = Refusal{*refused};
      const std::string place = refused->place().empty() ? std::string() : " at " + std::string(refused->place());
      warnings.push_back(fmt::format("The schema of the tool '{}' cannot be enforced completely{}: {}.{}", detail::printable(tool.name), place, refused->message(),
                                     held ? " The rest of it is enforced." : " The tool cannot be called."));
    }
    if (kept.empty() && first) throw Refusal{*first};
    tools_ = std::move(kept);
    return warnings;
  }

  [[nodiscard]] Grammar whole() const {
    switch (options_.use) {
      case ToolUse::required:
      case ToolUse::at_once:
        if (format_.recipients) return all(Opening::read);  // the prompt has ended with a call's opening marker
        return Sequence().part(reasoning()).part(all(Opening::written)).done();
      case ToolUse::after_text: return Sequence().part(begun_reasoning()).part(after_text()).done();
      case ToolUse::automatic: break;
    }
    const std::vector<std::string> opens = openings();
    if (opens.empty()) return must(Grammar::without(std::vector<std::string>{}));
    if (format_.recipients) return any_of({text_part(), after_text(), all(Opening::read)});
    return Sequence().part(begun_reasoning()).part(any_of({must(Grammar::without(opens)), after_text()})).done();
  }

 private:
  // written: the model must write the opening marker; read: the text before ends with the opening marker already.
  enum class Opening { written, read };

  // Returns the markers with which calls begin.
  [[nodiscard]] std::vector<std::string> openings() const {
    std::vector<std::string> opens;
    for (const OutputRegion* region : regions_) {
      if (format_.recipients) {
        for (const Tool& tool : tools_) opens.push_back(region->open[0] + tool.name + region->call.after_name);
      } else if (!region->keeps_open) opens.insert(opens.end(), region->open.begin(), region->open.end());
    }
    return opens;
  }

  [[nodiscard]] Grammar after_text() const {
    const std::vector<std::string> opens = openings();
    if (opens.empty()) return all(Opening::written);
    if (format_.recipients) return Sequence().part(text_part()).part(all(Opening::written)).done();
    return Sequence().part(must(Grammar::until(opens))).part(all(Opening::read)).done();
  }

  // For formats with recipients: returns the grammar of a text without a call. The text may contain recipient marks that begin no call.
  [[nodiscard]] Grammar text_part() const { return Sequence().text(format_.recipients->text).part(must(Grammar::without(openings()))).done(); }

  [[nodiscard]] const OutputRegion* reasoning_region() const {
    const auto region = std::find_if(format_.regions.begin(), format_.regions.end(),
                                     [](const OutputRegion& one) { return one.kind == RegionKind::reasoning; });
    return region == format_.regions.end() ? nullptr : &*region;
  }

  // If the prompt ends inside reasoning: returns the grammar of the rest of this reasoning, up to its end marker; call markers in it
  // begin no call. Otherwise returns the grammar of the empty text.
  [[nodiscard]] Grammar begun_reasoning() const {
    const OutputRegion* region = reasoning_region();
    if (!options_.starts_in_reasoning || region == nullptr) return Sequence().done();
    return rest_of(*region);
  }

  // Returns the grammar of the text of a reasoning region up to and including its end marker. Formats with message headers: the text must
  // not contain a header, because a header would end the reasoning.
  [[nodiscard]] Grammar rest_of(const OutputRegion& region) const {
    if (!format_.header) return must(Grammar::until(region.close));
    std::vector<std::string> none = region.close;
    none.insert(none.end(), {format_.header->start, format_.header->channel});
    return Sequence().part(must(Grammar::without(none))).part(any_text_of(region.close)).done();
  }

  // Returns the grammar of the reasoning that may come before calls.
  [[nodiscard]] Grammar reasoning() const {
    Sequence out;
    const OutputRegion* region = reasoning_region();
    if (region == nullptr) return out.pattern(kSpace).done();
    const Grammar rest = rest_of(*region);
    if (options_.starts_in_reasoning) out.part(rest);
    else if (options_.use != ToolUse::at_once) out.part(optional(Sequence().pattern(kSpace).part(any_text_of(region->open)).part(rest).done()));
    out.pattern(kSpace);
    if (!format_.between.empty() && options_.use != ToolUse::at_once) out.part(optional(Sequence().text(format_.between).done()));
    return out.done();
  }

  [[nodiscard]] Grammar all(Opening opening) const {
    std::vector<Grammar> ways;
    for (const OutputRegion* region : regions_) {
      if (opening == Opening::read && region->keeps_open) continue;
      ways.push_back(regions_of(*region, opening));
    }
    return any_of(ways);
  }

  // Returns the grammar of a region with calls. If a region of this kind has only one call, several regions may follow each other.
  [[nodiscard]] Grammar regions_of(const OutputRegion& region, Opening opening) const {
    Sequence out;
    out.part(region_of(region, opening));
    if (!region.call.list && options_.max_calls != 1) {
      const Grammar next = Sequence().pattern(kSpace).part(region_of(region, Opening::written)).done();
      out.part(must(Grammar::repeat(next, 0, options_.max_calls == 0 ? 0 : clamped(options_.max_calls - 1))));
    }
    return out.pattern(kSpace).done();
  }

  [[nodiscard]] Grammar region_of(const OutputRegion& region, Opening opening) const {
    Sequence out;
    if (opening == Opening::written && !region.keeps_open) out.part(any_text_of(region.open));
    if (region.call.syntax != CallSyntax::named_json || region.call.list) out.pattern(kSpace);
    out.part(body(region));
    if (region.close.empty()) return out.done();
    out.pattern(kSpace);
    // If the region's end marker also ends the turn, the grammar does not require the marker: mostly it is a token that ends the
    // generation, and this token does not appear in the text.
    const bool ends_turn = std::all_of(region.close.begin(), region.close.end(), [&](const std::string& close) {
      return std::find(format_.dropped.begin(), format_.dropped.end(), close) != format_.dropped.end();
    });
    const Grammar close = any_text_of(region.close);
    return out.part(ends_turn ? optional(close) : close).done();
  }

  [[nodiscard]] Grammar body(const OutputRegion& region) const {
    const Grammar one = any_call(region);
    const std::optional<CallList>& list = region.call.list;
    if (!list) return one;
    Sequence out;
    if (!list->open.empty()) out.text(list->open).pattern("[ \\n]{0,8}");
    out.part(one);
    if (options_.max_calls != 1) {
      Sequence next;
      if (!list->separator.empty() && list->separator != "\n") next.pattern(kSpace).text(list->separator);
      next.pattern("[ \\n]{0,8}").part(one);
      out.part(must(Grammar::repeat(next.done(), 0, options_.max_calls == 0 ? 0 : clamped(options_.max_calls - 1))));
    }
    if (!list->close.empty()) out.pattern(kSpace).text(list->close);
    return out.done();
  }

  [[nodiscard]] Grammar any_call(const OutputRegion& region) const {
    std::vector<Grammar> ways;
    for (const Tool& tool : tools_) ways.push_back(call(region, tool));
    return any_of(ways);
  }

  [[nodiscard]] Grammar call(const OutputRegion& region, const Tool& tool) const {
    const CallForm& form = region.call;
    JsonSchemaOptions json = options_.json;
    json.unsupported = tool.unsupported.value_or(json.unsupported);
    Sequence out;
    switch (form.syntax) {
      case CallSyntax::json: {
        out.text("{");
        if (!region.keeps_open) out.pattern(" ?");  // keeps_open: the opening marker is {"name", so no space may follow "{"
        if (form.has_id) {
          out.part(optional(Sequence().text(detail::json_string(form.id_key)).pattern(R"( ?: ?"[A-Za-z0-9_-]{1,64}" ?, ?)").done()));
        }
        if (form.name_key.empty()) {
          return out.text(detail::json_string(tool.name)).pattern(" ?: ?").part(json_arguments(tool.schema, json)).pattern(" ?").text("}").done();
        }
        out.text(detail::json_string(form.name_key)).pattern(" ?: ?").text(detail::json_string(tool.name)).pattern(" ?, ?").text(detail::json_string(form.arguments_key));
        return out.pattern(" ?: ?").part(json_arguments(tool.schema, json)).pattern(" ?").text("}").done();
      }
      case CallSyntax::named_json:
        named(out, form, tool);
        return out.part(json_arguments(tool.schema, json)).text(form.close).done();
      case CallSyntax::parameters:
        named(out, form, tool);
        return out.pattern(kSpace).part(parameter_arguments(tool.schema, form, value_markers(region), json)).text(form.close).done();
      case CallSyntax::elements:
        named(out, form, tool);
        return out.part(element_arguments(tool.schema, form, json)).text(form.close).done();
      case CallSyntax::pythonic:
        check_name(tool, is_python_name(tool.name));
        return out.text(tool.name).part(python_arguments(tool.schema, json)).done();
      case CallSyntax::braces:
        check_name(tool, is_readable(tool.name));
        out.text(form.open).text(tool.name);
        return out.part(brace_arguments(tool.schema, region.close.empty() ? "" : region.close[0], json)).done();
    }
    return out.done();
  }

  // Fails if the output parser could not read the tool's name completely.
  static void check_name(const Tool& tool, bool is_readable) {
    if (is_readable) return;
    throw Refusal{detail::make_error(ErrorCode::unsupported, "the output format has no way to write the name '{}' of a tool; choose letters, digits and _",
                                     detail::printable(tool.name))};
  }
  // Returns whether the parser accepts the text as a name even if no tool has it.
  static bool is_readable(const std::string& name) {
    return std::none_of(name.begin(), name.end(), [](char c) {
      return static_cast<unsigned char>(c) < ' ' || std::string_view("<>{}[]()|\"'`=,;\\").find(c) != std::string_view::npos;
    }) && name.front() != ' ' && name.back() != ' ';
  }
  // Returns the markers that must not occur in a value that is written as plain text.
  static std::vector<std::string> value_markers(const OutputRegion& region) {
    std::vector<std::string> out;
    for (const std::string* text : {&region.call.value_close, &region.call.key_open, &region.call.close, &region.call.text_open}) {
      if (!text->empty()) out.push_back(*text);
    }
    out.insert(out.end(), region.close.begin(), region.close.end());
    return out;
  }
  static bool is_python_name(const std::string& name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    return std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '.';
    });
  }

  static void named(Sequence& out, const CallForm& form, const Tool& tool) {
    check_name(tool, is_readable(tool.name) && (form.after_name.empty() || tool.name.find(form.after_name) == tool.name.npos));
    out.text(form.open);
    if (!form.id_end.empty()) out.pattern("[A-Za-z0-9_-]{1,64}").text(form.id_end);
    out.text(form.name_prefix).text(tool.name);
    if (!form.id_mark.empty()) out.text(form.id_mark).pattern("0|[1-9][0-9]{0,3}");
    if (!form.name_tails.empty()) out.part(optional(any_text_of(form.name_tails)));
    out.text(form.after_name);
  }

  static std::uint32_t clamped(std::size_t calls) { return static_cast<std::uint32_t>(std::min<std::size_t>(calls, 1000)); }

  const OutputFormat& format_;
  std::vector<Tool> tools_;
  const ToolGrammarOptions& options_;
  std::vector<const OutputRegion*> regions_;
};

// Appends the markers with which a form of calls is written.
void add_markers(std::vector<std::string>& out, const CallForm& form) {
  out.insert(out.end(), form.name_tails.begin(), form.name_tails.end());
  for (const std::string* text : {&form.open, &form.after_name, &form.close, &form.key_open, &form.key_close, &form.value_open,
                                  &form.value_close, &form.id_end, &form.mark, &form.text_open, &form.text_close}) {
    out.push_back(*text);
  }
  if (form.syntax == CallSyntax::braces) out.emplace_back("<|\"|>");
}

// Returns all markers of the format, including markers of forms that the parser reads but the grammar never writes (OutputRegion::also).
std::vector<std::string> markers_of(const OutputFormat& format) {
  std::vector<std::string> out = format.dropped;
  out.push_back(format.between);
  if (format.header) {
    out.insert(out.end(), {format.header->start, format.header->channel, format.header->end});
    out.insert(out.end(), format.header->blank.begin(), format.header->blank.end());
  }
  for (const OutputRegion& region : format.regions) {
    out.insert(out.end(), region.open.begin(), region.open.end());
    out.insert(out.end(), region.close.begin(), region.close.end());
    add_markers(out, region.call);
    for (const CallForm& form : region.also) add_markers(out, form);
  }
  return out;
}

// Returns whether the control token's text is one of the markers, or a part of one.
bool is_of(const std::vector<std::string>& markers, std::string_view token) {
  return !token.empty() && std::ranges::any_of(markers, [&](const std::string& marker) { return marker.find(token) != marker.npos; });
}

}  // namespace

std::string ToolGrammarOptions::key() const {
  const auto& [a, b, c, d, e] = *this;  // names all fields, so that a field added later does not compile until it is handled here
  return fmt::format("{} {} {} {} {}", static_cast<std::int32_t>(a), detail::json_string(b), c, d, e.key());
}

Result<Grammar> tool_grammar(const OutputFormat& format, std::span<const Json> tools, const ToolGrammarOptions& options) noexcept {
  return detail::guard([&]() -> Result<Grammar> {
    try {
      return Calls(format, callable(tools, options.name), options).whole();
    } catch (Refusal& refusal) {
      return std::move(refusal.error);
    }
  });
}

Result<ToolGrammar> held_tool_grammar(const OutputFormat& format, std::span<const Json> tools, const ToolGrammarOptions& options) noexcept {
  return detail::guard([&]() -> Result<ToolGrammar> {
    try {
      Calls calls(format, callable(tools, options.name), options);
      std::vector<std::string> warnings = calls.loosen();
      return ToolGrammar{.grammar = calls.whole(), .warnings = std::move(warnings)};
    } catch (Refusal& refusal) {
      return std::move(refusal.error);
    }
  });
}

Result<std::vector<Token>> marker_tokens(const Tokenizer& tokenizer, const OutputFormat& format) noexcept {
  return detail::guard([&]() -> Result<std::vector<Token>> {
    const std::vector<std::string> markers = markers_of(format);
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) {
      const auto token = static_cast<Token>(i);
      if (tokenizer.is_control(token) && is_of(markers, tokenizer.text(token))) tokens.push_back(token);
    }
    return tokens;
  });
}

Result<GrammarVocabulary> tool_vocabulary(const Tokenizer& tokenizer, const OutputFormat& format) noexcept {
  return detail::guard([&]() -> Result<GrammarVocabulary> {
    if (tokenizer.vocab_size() == 0) return detail::no_tokenizer_error();
    const std::vector<std::string> markers = markers_of(format);
    std::vector<std::string> tokens(tokenizer.vocab_size());
    std::vector<Token> ends;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto token = static_cast<Token>(i);
      if (tokenizer.is_end_of_generation(token)) {
        ends.push_back(token);
      } else if (tokenizer.type(token) == TokenType::control) {
        const std::string_view text = tokenizer.text(token);
        if (is_of(markers, text)) tokens[i] = text;
      } else if (tokenizer.type(token) != TokenType::unknown && tokenizer.type(token) != TokenType::unused) {
        tokens[i] = tokenizer.piece(token);
      }
    }
    return GrammarVocabulary::create(tokens, ends, tokenizer.fingerprint());
  });
}

}  // namespace tessera
