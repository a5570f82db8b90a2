#include "models/served_model.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include <tessera/extend/chat/template_use.hpp>

#include "api_error.hpp"
#include "failure.hpp"
#include "fields/closed_schema.hpp"
#include "fields/grammar_store.hpp"
#include "json_object.hpp"
#include "models/model_card.hpp"
#include "system/program.hpp"

namespace server {

using tessera::ChatTemplate;
using tessera::CompiledGrammar;
using tessera::Grammar;
using tessera::GrammarSource;
using tessera::GrammarVocabulary;
using tessera::Json;
using tessera::Matcher;
using tessera::OutputFormat;
using tessera::OutputRegion;
using tessera::RegionKind;
using tessera::ToolUse;

namespace {

tessera::LocalTime local_time() {
  const std::tm t = tessera::tool::local_time();
  return {t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec};
}

// Makes a conversation without messages. Conversation::create() finds the template and the output format of the model.
tessera::Conversation empty_conversation(const tessera::Engine& engine, std::optional<ChatTemplate> chat_template) {
  return value(tessera::Conversation::create(engine, {}, {.chat_template = std::move(chat_template)}));
}

// Returns the text of the assistant's message that an answer continues, with its reasoning in the format's markers.
std::string begun_text(const OutputFormat& format, const tessera::Message& message) {
  const auto region = std::ranges::find(format.regions, RegionKind::reasoning, &OutputRegion::kind);
  if (message.reasoning.empty() || region == format.regions.end() || region->close.empty()) return message.content;
  const std::string thought = region->open[0] + (region->open[0].ends_with('\n') ? "" : "\n") + message.reasoning;
  return message.content.empty() ? thought : thought + "\n" + region->close[0] + "\n\n" + message.content;
}

// Returns whether a template shows all of these messages, in their order.
bool shows(const ChatTemplate& chat_template, std::vector<tessera::Message> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) messages[i].content = fmt::format("tessera-probe-{}", i);
  const std::size_t count = messages.size();
  const auto rendered = chat_template.render(tessera::ChatRequest{.messages = std::move(messages)}, {.now = local_time()});
  if (!rendered) return false;
  const std::string text = rendered->text();
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    at = text.find(fmt::format("tessera-probe-{}", i), at);
    if (at == std::string::npos) return false;
  }
  return true;
}

// Brings system messages into a form that the template can show (docs/reference/server-fields.md). System messages at the beginning become
// one message. A later system message stays if the template shows it at its place. A system message that the template does not show becomes
// a message of the user, and is joined to the user's messages beside it.
void settle_system_messages(std::vector<tessera::Message>& messages, bool takes_system, bool takes_later) {
  std::vector<tessera::Message> settled;
  const auto join = [&](const tessera::Message& message) {
    std::string& text = settled.back().content;
    if (!text.empty() && !message.content.empty()) text += "\n\n";
    text += message.content;
  };
  bool in_front = true, joins_next = false;  // joins_next: the user's next message joins the message before it
  for (tessera::Message& message : messages) {
    const bool is_system = message.role == "system", is_front = is_system && in_front;
    in_front = in_front && is_system;
    if (is_system && !(is_front ? takes_system : takes_later)) {
      message.role = "user";
      if (!settled.empty() && settled.back().role == "user") join(message);
      else settled.push_back(std::move(message));
      joins_next = true;
      continue;
    }
    const bool joins = settled.empty() ? false : is_system ? settled.back().role == "system" : message.role == "user" && joins_next;
    joins_next = false;
    if (joins) join(message);
    else settled.push_back(std::move(message));
  }
  messages = std::move(settled);
}

std::vector<std::string> markers(const OutputFormat& format, RegionKind kind, std::vector<std::string> OutputRegion::*which) {
  std::vector<std::string> found;
  for (const OutputRegion& region : format.regions) {
    if (region.kind == kind) found.insert(found.end(), (region.*which).begin(), (region.*which).end());
  }
  return found;
}

// Returns a grammar for whole answers: the markers of `format`, and a text that matches `text`. in_reasoning: the prompt has begun
// reasoning, so an answer first ends this reasoning. may_reason: an answer may begin with reasoning. Formats with recipients, or with
// opening markers of text, use neither.
Grammar as_answer(const OutputFormat& format, const Grammar& text, bool in_reasoning, bool may_reason) {
  if (format.recipients) return value_or_refuse(Grammar::sequence({value_or_refuse(Grammar::literal(format.recipients->text)), text}));
  const auto opens = markers(format, RegionKind::text, &OutputRegion::open);
  if (!opens.empty()) return value_or_refuse(Grammar::sequence({value_or_refuse(Grammar::until(opens)), text}));
  const auto ends = markers(format, RegionKind::reasoning, &OutputRegion::close);
  if (ends.empty()) return text;
  const Grammar rest_of_reasoning = value_or_refuse(Grammar::until(ends));
  const Grammar space = value_or_refuse(Grammar::regex("[ \\n]{0,4}"));
  if (in_reasoning) return value_or_refuse(Grammar::sequence({rest_of_reasoning, space, text}));
  if (!may_reason) return text;
  std::vector<Grammar> ways{text};
  for (const std::string& open : markers(format, RegionKind::reasoning, &OutputRegion::open)) {
    ways.push_back(value_or_refuse(Grammar::sequence({value_or_refuse(Grammar::literal(open)), rest_of_reasoning, space, text})));
  }
  return value_or_refuse(Grammar::alternatives(ways));
}

Grammar grammar_of(const GrammarSource& source, const std::string& field) {
  switch (source.kind) {
    case GrammarSource::Kind::json_schema: return value_or_refuse(Grammar::json_schema(source.text, source.options), field);
    case GrammarSource::Kind::regex: return value_or_refuse(Grammar::regex(source.text), field);
    default: return value_or_refuse(Grammar::ebnf(source.text), field);
  }
}

std::vector<Json> with_closed_parameters(std::vector<Json> tools) {
  for (Json& tool : tools) {
    const Json* function = tool.find("function");
    if (function == nullptr) continue;
    const Json* parameters = function->find("parameters");
    Json closed = *function;
    // A function whose parameters are absent, null or {} has no parameters.
    const bool takes_none = parameters == nullptr || parameters->is_null() || *parameters == Json::object();
    closed.set("parameters", takes_none ? Json(Object().set("type", "object").set("properties", Json::object()).set("additionalProperties", false))
                                        : closed_schema(*parameters));
    tool.set("function", std::move(closed));
  }
  return tools;
}

Matcher begin(const StoredGrammar& stored) { return value_or_refuse(Matcher::create(stored.grammar)); }
Matcher begin(const StoredGrammar& stored, Notes& notes) {
  for (const std::string& warning : stored.warnings) notes.warn(warning);
  return begin(stored);
}

}  // namespace

// Compiled grammars, and the vocabularies for which they are compiled: of texts, of answers, and of answers with tools that the prompt
// describes in words. Making a vocabulary takes some 100 ms, so each is made when the first grammar needs it.
struct ServedModel::Grammars {
  GrammarStore store;
  std::mutex mutex;
  std::optional<GrammarVocabulary> plain, chat, told;

  const GrammarVocabulary& vocabulary(std::optional<GrammarVocabulary>& which, const std::function<tessera::Result<GrammarVocabulary>()>& make) {
    const std::lock_guard lock(mutex);
    if (!which) which = value_or_refuse(make());
    return *which;
  }
};

ServedModel::ServedModel(tessera::Engine engine, std::string id, std::optional<ChatTemplate> chat_template)
    : ServedModel(empty_conversation(engine, std::move(chat_template)), std::move(id)) {}

ServedModel::ServedModel(const tessera::Conversation& conversation, std::string id)
    : engine_(conversation.session().engine()),
      id_(std::move(id)),
      created_(std::time(nullptr)),
      has_template_(conversation.has_template()),
      template_(conversation.chat_template()),
      format_(conversation.output_format()),
      told_format_(value(tessera::find_output_format("hermes"))),
      grammars_(std::make_unique<Grammars>()) {
  marker_tokens_ = value(tessera::marker_tokens(tokenizer(), format_));
  told_marker_tokens_ = value(tessera::marker_tokens(tokenizer(), told_format_));
  knows_tools_ = value(tessera::prints_tools(template_));
  takes_system_ = shows(template_, {{.role = "system"}, {.role = "user"}});
  takes_later_system_ = shows(template_, {{.role = "system"}, {.role = "user"}, {.role = "system"}, {.role = "user"}}) &&
                        shows(template_, {{.role = "user"}, {.role = "assistant"}, {.role = "system"}, {.role = "user"}});
}
ServedModel::~ServedModel() = default;

bool ServedModel::reasons() const { return knows_reasoning(format_, template_source()); }

std::string ServedModel::calls_warning() const {
  const auto check = tessera::check_calls(template_, format_);
  return check ? check->warning : std::string();
}

const OutputFormat& ServedModel::format(bool has_tools) const noexcept { return has_tools && !knows_tools_ ? told_format_ : format_; }

const std::vector<tessera::Token>& ServedModel::marker_tokens(bool has_tools) const noexcept {
  return has_tools && !knows_tools_ ? told_marker_tokens_ : marker_tokens_;
}

tessera::StopFree ServedModel::stop_free(bool has_tools, bool in_reasoning) const {
  return {.stretches = value_or_refuse(tessera::reasoning_stretches(format(has_tools))), .starts_inside = in_reasoning};
}

ChatPrompt ServedModel::prompt(const ChatWish& wish) const {
  tessera::ChatRequest request = wish.request;
  const bool has_tools = !request.tools.empty();
  const OutputFormat& form = format(has_tools);
  if (!knows_tools_) value_or_refuse(tessera::tell_tools_in_words(request), "tools");
  settle_system_messages(request.messages, takes_system_, takes_later_system_);
  std::string begun;
  if (wish.continues && !request.messages.empty()) {
    begun = begun_text(form, request.messages.back());
    request.messages.pop_back();
  }
  auto rendered = value_or_refuse(template_.render(request, {.now = local_time()}), "messages");
  ChatPrompt prompt{.in_reasoning = value_or_refuse(tessera::begin_answer(rendered, form, begun), "messages")};
  prompt.text = rendered.text();
  prompt.tokens = value_or_refuse(rendered.encode(tokenizer()), "messages");
  if (prompt.tokens.empty()) throw ApiError(400, "The model's template makes no text of these messages.", "messages");
  return prompt;
}

std::vector<tessera::Token> ServedModel::encode(std::string_view text, bool special) const {
  using tessera::Special;
  return value_or_refuse(tokenizer().encode(text, {.special = special ? Special::parse : Special::as_text}), "prompt");
}

Matcher ServedModel::matcher(const GrammarSource& source, const std::string& field) {
  return begin(grammars_->store.get("text " + source.key(), [&] {
    const auto& vocabulary = grammars_->vocabulary(grammars_->plain, [&] { return GrammarVocabulary::create(tokenizer()); });
    return StoredGrammar{value_or_refuse(CompiledGrammar::create(grammar_of(source, field), vocabulary), field)};
  }));
}

const GrammarVocabulary& ServedModel::vocabulary(bool has_tools) {
  const bool told = has_tools && !knows_tools_;
  return grammars_->vocabulary(told ? grammars_->told : grammars_->chat, [&] { return tessera::tool_vocabulary(tokenizer(), format(has_tools)); });
}

Matcher ServedModel::answer_matcher(const GrammarSource& source, const std::string& field, const ChatPrompt& prompt,
                                    const std::vector<Json>& tools, const tessera::ToolGrammarOptions& calls, Notes& notes) {
  const bool has_tools = !tools.empty();
  const auto key = fmt::format("answer {} {}{} {}", prompt.in_reasoning, calls.key(), Json(tools).dump(), source.key());
  return begin(grammars_->store.get(key, [&] {
    const OutputFormat& form = format(has_tools);
    const auto opens = markers(form, RegionKind::reasoning, &OutputRegion::open);
    const bool may_reason = std::ranges::any_of(opens, [&](const std::string& open) { return template_.source().find(open) != std::string_view::npos; });
    Grammar answer = as_answer(form, grammar_of(source, field), prompt.in_reasoning, may_reason);
    std::vector<std::string> warnings;
    if (has_tools) {
      auto held = value_or_refuse(tessera::held_tool_grammar(form, with_closed_parameters(tools), calls), "tools");
      answer = value_or_refuse(Grammar::alternatives({held.grammar, answer}));
      warnings = std::move(held.warnings);
    }
    return StoredGrammar{value_or_refuse(CompiledGrammar::create(answer, vocabulary(has_tools)), field), std::move(warnings)};
  }), notes);
}

std::optional<tessera::ReasoningBudget> ServedModel::reasoning_budget(const tessera::ReasoningBudgetOptions& options, bool has_tools) const {
  auto budget = tessera::ReasoningBudget::create(tokenizer(), format(has_tools), options);
  if (!budget && budget.error().code() == tessera::ErrorCode::unsupported) return std::nullopt;
  return value_or_refuse(std::move(budget));
}

std::optional<Matcher> ServedModel::tool_matcher(const std::vector<Json>& tools, const tessera::ToolGrammarOptions& options, Notes& notes) {
  const auto key = "tools " + options.key() + Json(tools).dump();
  try {
    return begin(grammars_->store.get(key, [&] {
      auto held = value_or_refuse(tessera::held_tool_grammar(format(true), with_closed_parameters(tools), options), "tools");
      return StoredGrammar{value_or_refuse(CompiledGrammar::create(held.grammar, vocabulary(true)), "tools"), std::move(held.warnings)};
    }), notes);
  } catch (const ApiError& error) {
    if (options.use != ToolUse::automatic) throw;
    notes.warn(fmt::format("{} Calls are not held to their tools' schemas.", error.what()));
    return std::nullopt;
  }
}

}  // namespace server
