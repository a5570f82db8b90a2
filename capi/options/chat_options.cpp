// The JSON of conversations and their answers.
#include <charconv>
#include <limits>
#include <string>

#include <tessera/extend/chat/reasoning_budget.hpp>
#include <tessera/extend/grammar/matcher.hpp>

#include "generation.hpp"
#include "options/engine_options.hpp"
#include "sampler.hpp"
#include "scheduler.hpp"
#include "text/chat.hpp"
#include "text/grammar.hpp"
#include "values/tables.hpp"

namespace tessera::c {

namespace {

// Reads "2026-11-27" or "2026-11-27 16:00:00" (a T may stand between).
LocalTime time_of(const Value& value) {
  const std::string& text = value.string();
  LocalTime time;
  int* const numbers[] = {&time.year, &time.month, &time.day, &time.hour, &time.minute, &time.second};
  constexpr std::string_view kShape = "dddd-dd-dd dd:dd:dd";
  const bool whole = text.size() == kShape.size() || text.size() == 10;
  std::size_t n = 0;
  int number = 0;
  for (std::size_t i = 0; whole && i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    const bool fits = kShape[i] == 'd' ? digit : text[i] == kShape[i] || (kShape[i] == ' ' && text[i] == 'T');
    if (!fits) value.refuse("must be a local time like \"2026-11-27 16:00:00\"");
    number = digit ? number * 10 + (text[i] - '0') : 0;
    *numbers[n] = digit ? number : *numbers[n];
    if (!digit) ++n;
  }
  const bool valid = time.month >= 1 && time.month <= 12 && time.day >= 1 && time.day <= 31 && time.hour < 24 &&
                     time.minute < 60 && time.second < 61;
  if (!whole || !valid) value.refuse("must be a local time like \"2026-11-27 16:00:00\"");
  return time;
}

struct ConversationAsked {
  const Engine* engine = nullptr;
  ConversationOptions options;
};
constexpr Key<ConversationAsked> kConversationKeys[] = {
    {"chat_template", "text", "a template instead of the model's (Jinja)",
     [](ConversationAsked& to, const Value& v) {
       to.options.chat_template = must(chat_template_of(*to.engine, v.string()));
     }},
    {"output_format", "text",
     "how the model writes reasoning and calls: \"hermes\", \"harmony\", ...; default: found from the template; if the template does "
     "not print tools, the prompt then describes them in words, which it does not do with this key",
     [](ConversationAsked& to, const Value& v) { to.options.output_format = must(find_output_format(v.string())); }},
    {"now", "text",
     "local time for templates that print it: \"2026-11-27 16:00:00\"; default: such a template is an error",
     [](ConversationAsked& to, const Value& v) { to.options.render.now = time_of(v); }},
    {"session", "object", "options of the session: see Session",
     [](ConversationAsked& to, const Value& v) { read_session_options(v, to.options.session); }},
};

constexpr std::string_view kUses[] = {"required", "at_once", "after_text", "auto"};

constexpr Key<ToolGrammarOptions> kChoiceKeys[] = {
    {"use", "text", "\"required\", \"at_once\", \"after_text\", \"auto\"; default \"required\"",
     [](ToolGrammarOptions& to, const Value& v) { to.use = v.one_of<ToolUse>(kUses); }},
    {"name", "text", "the only tool that may be called; default any",
     [](ToolGrammarOptions& to, const Value& v) { to.name = v.string(); }},
    {"max_calls", "integer", "default 0: any number",
     [](ToolGrammarOptions& to, const Value& v) { to.max_calls = v.integer<std::size_t>(); }},
};

struct AnswerKeys {
  EngineState* engine = nullptr;
  std::size_t max_tokens = 0;
  std::vector<std::string> stop;
  SpeculateOptions speculate;
  const Json* sampler = nullptr;
  std::string sampler_path;
  std::optional<CompiledGrammar> grammar;
  std::optional<ToolGrammarOptions> choice;
  std::optional<std::size_t> reasoning;
  Request request;
  bool is_request = false;  // true: a key was read that only requests to a scheduler have
};

constexpr std::string_view kAnswerLate[] = {"run", "refuse"};
constexpr Key<AnswerKeys> kAnswerKeys[] = {
    {"max_tokens", "integer", "tokens at most; default 0: until the model ends, or the context is full",
     [](AnswerKeys& to, const Value& v) { to.max_tokens = v.integer<std::size_t>(); }},
    {"stop", "text, list of texts",
     "the answer ends before the first of these texts; in its reasoning they have no effect",
     [](AnswerKeys& to, const Value& v) { to.stop = v.stop_texts(); }},
    {"sampler", "object", "how tokens are drawn: see Sampler; default greedy",
     [](AnswerKeys& to, const Value& v) { to.sampler = &v.json(), to.sampler_path = v.path(); }},
    {"grammar", "object", "the texts that are allowed: see Grammar",
     [](AnswerKeys& to, const Value& v) { to.grammar = read_grammar(*to.engine, v); }},
    {"tool_choice", "text, object",
     "what the answer may contain, with the tools' schemas enforced: \"required\" (calls), \"at_once\" (calls, nothing in front), "
     "\"after_text\" (text, then calls), \"auto\" (text or calls), or `{\"use\": ..., \"name\": ..., \"max_calls\": ...}`; default: anything, "
     "nothing is enforced",
     [](AnswerKeys& to, const Value& v) {
       ToolGrammarOptions& choice = to.choice.emplace();
       if (v.json().string() != nullptr)
         choice.use = v.one_of<ToolUse>(kUses);
       else
         read_keys<ToolGrammarOptions>(v, kChoiceKeys, choice);
     }},
    {"reasoning_tokens", "integer", "tokens of reasoning at most; 0: reasoning ends where it begins; default: no limit",
     [](AnswerKeys& to, const Value& v) { to.reasoning = v.integer<std::size_t>(); }},
    {"speculate", "object", "see Speculation", [](AnswerKeys& to, const Value& v) { read_speculate(v, to.speculate); }},
    {"early_exit", "object", "see EarlyExit", [](AnswerKeys& to, const Value& v) { read_early_exit(v, to.early_exit); }},
    {"tenant", "text", "with a scheduler: the user to whom the answer belongs",
     [](AnswerKeys& to, const Value& v) { to.request.tenant = v.string(), to.is_request = true; }},
    {"priority", "integer", "with a scheduler: lower is served first; default 0",
     [](AnswerKeys& to, const Value& v) { to.request.priority = v.integer<std::int32_t>(), to.is_request = true; }},
    {"deadline", "number", "with a scheduler: seconds from now to the last token, above 0; default none",
     [](AnswerKeys& to, const Value& v) { to.request.deadline = v.positive(), to.is_request = true; }},
    {"if_late", "\"run\", \"refuse\"", "with a scheduler: as in a request; default \"run\"",
     [](AnswerKeys& to, const Value& v) { to.request.if_late = v.one_of<IfLate>(kAnswerLate), to.is_request = true; }},
};

Json greedy_sampler() {
  Json json = Json::object();
  json.set("greedy", true);
  return json;
}

struct Shorten {
  EngineState* engine = nullptr;
  ShortenAsked asked;
  bool has_sampler = false;
};
constexpr Key<Shorten> kShortenKeys[] = {
    {"keep_turns", "integer", "last turns that stay; 0: none; default 2",
     [](Shorten& to, const Value& v) { to.asked.options.keep_turns = v.integer<std::size_t>(); }},
    {"summarise", "boolean", "true: the model writes a summary of the turns that are taken out; default false",
     [](Shorten& to, const Value& v) { to.asked.summarise = v.boolean(); }},
    {"question", "text", "the question by which the model is asked for the summary",
     [](Shorten& to, const Value& v) { to.asked.options.question = v.string(); }},
    {"max_tokens", "integer", "tokens of the summary at most; 0: until the model ends; default 256",
     [](Shorten& to, const Value& v) { to.asked.options.max_tokens = v.integer<std::size_t>(); }},
    {"sampler", "object", "how the summary is drawn: see Sampler; default greedy",
     [](Shorten& to, const Value& v) { to.asked.sampler = read_sampler(*to.engine, v), to.has_sampler = true; }},
};

}  // namespace

ChatRequest read_chat(const char* json, std::size_t size, std::string_view what) {
  const Json parsed = parse_json(json, size, what, HalfPairs::replace);
  if (parsed.members() != nullptr && parsed.members()->empty()) return {};
  return must(ChatRequest::from_json(parsed));
}

ConversationOptions read_conversation_options(const Engine& engine, const char* json, std::size_t size) {
  ConversationAsked asked;
  asked.engine = &engine;
  read_options<ConversationAsked>(json, size, "options", kConversationKeys, asked);
  return std::move(asked.options);
}

AnswerAsked read_answer(ConversationState& of, const char* json, std::size_t size, bool has_scheduler) {
  AnswerKeys asked;
  asked.engine = of.engine.get();
  const Json parsed = parse_json(json, size, "json");
  const Value value(parsed, {});
  read_keys<AnswerKeys>(value, kAnswerKeys, asked);
  if (asked.is_request && !has_scheduler)
    value.refuse("\"tenant\", \"priority\", \"deadline\" and \"if_late\" are for answers with a scheduler");
  const bool sampler_has_grammar = asked.sampler != nullptr && asked.sampler->find("grammar") != nullptr;
  if ((asked.grammar ? 1 : 0) + (asked.choice ? 1 : 0) + (sampler_has_grammar ? 1 : 0) > 1) {
    value.refuse("has more than one of \"grammar\", \"tool_choice\", \"sampler.grammar\": use one");
  }
  const FirstStages first = [&](sampling::Chain& chain) {
    if (asked.grammar) chain.stage(sampling::GrammarStage{must(Matcher::create(*asked.grammar))});
    if (asked.choice) chain.stage(sampling::GrammarStage{must(of.conversation.tool_matcher(*asked.choice))});
    if (asked.reasoning) chain.stage(must(of.conversation.reasoning_budget({.tokens = *asked.reasoning})));
  };
  const Json likeliest = greedy_sampler();
  AnswerAsked result;
  result.sampler =
      read_sampler(*of.engine, Value(asked.sampler != nullptr ? *asked.sampler : likeliest, asked.sampler_path), first);
  if (has_scheduler) {
    result.request = std::move(asked.request);
    result.request.sampler = std::move(result.sampler);
    result.request.generate.max_tokens = asked.max_tokens;
    result.request.generate.stop_strings = std::move(asked.stop);
    result.request.generate.speculate = std::move(asked.speculate);
  } else {
    result.options.max_tokens = asked.max_tokens;
    result.options.stop_strings = std::move(asked.stop);
    result.options.speculate = std::move(asked.speculate);
  }
  return result;
}

ShortenAsked read_shorten(EngineState& engine, const char* json, std::size_t size) {
  Shorten shorten;
  shorten.engine = &engine;
  read_options<Shorten>(json, size, "json", kShortenKeys, shorten);
  const Json likeliest = greedy_sampler();
  if (!shorten.has_sampler) shorten.asked.sampler = read_sampler(engine, Value(likeliest, {}));
  return std::move(shorten.asked);
}

std::vector<Table> chat_tables() {
  return {table_of<ConversationAsked>("Conversation", kConversationKeys), table_of<AnswerKeys>("Answer", kAnswerKeys),
          table_of<Shorten>("Shorten", kShortenKeys)};
}

}  // namespace tessera::c
