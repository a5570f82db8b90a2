#include "chat_fields.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "answer_job.hpp"
#include "closed_schema.hpp"

namespace server {

using tessera::GrammarSource;
using tessera::Json;
using tessera::Message;
using Kind = ToolChoice::Kind;

namespace {

// A message with the fields that the API knows in their right form; others are the template's.
Json checked(const Json& message, const std::string& path) {
  Fields fields(message, path);
  (void)fields.need(fields.choice("role", {"system", "developer", "user", "assistant", "tool"}), "role");
  for (const char* name : {"name", "tool_call_id", "reasoning_content", "reasoning"}) (void)fields.text(name);
  for (const char* name : {"audio", "function_call"}) {
    if (fields.any(name) != nullptr) fields.refuse(name, "This server does not support this field.");
  }
  const Json::Array* calls = fields.list("tool_calls");
  for (std::size_t i = 0; calls != nullptr && i < calls->size(); ++i) {
    Fields call((*calls)[i], fmt::format("{}.tool_calls[{}]", path, i));
    (void)call.text("id");
    call.only("type", "function");
    Fields function(*call.need(call.object("function"), "function"), call.path_of("function"));
    (void)function.need(function.text("name"), "name");
    const Json& arguments = *function.need(function.any("arguments"), "arguments");
    if (arguments.string() == nullptr && arguments.members() == nullptr) function.refuse("arguments", "This must be JSON as a text, or an object.");
  }
  const Json* content = fields.any("content");
  Json flat = message;
  if (content != nullptr) flat.set("content", text_of_parts(*content, path + ".content"));
  std::erase_if(*flat.members(), [](const Json::Member& member) { return member.second.is_null(); });  // as good as absent
  return flat;
}

// Arguments come as text that is JSON; templates want the object.
void open_arguments(Message& message) {
  for (tessera::ToolCall& call : message.tool_calls) {
    if (call.arguments.string() == nullptr) continue;
    auto object = Json::parse(*call.arguments.string());
    if (object && object->members() != nullptr) call.arguments = std::move(*object);
  }
}

void read_messages(Fields& fields, tessera::ChatRequest& request) {
  const Json::Array& list = *fields.need(fields.list("messages"), "messages");
  if (list.empty()) fields.refuse("messages", "There must be a message at least.");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    Json message = checked(list[i], path);
    const Json* role = message.find("role");
    if (role != nullptr && role->string() != nullptr && *role->string() == "developer") message.set("role", "system");
    if (const Json* reasoning = message.find("reasoning"); reasoning != nullptr && reasoning->string() != nullptr) {
      message.set("reasoning_content", *reasoning->string());
    }
    request.messages.push_back(value_or_refuse(Message::from_json(message), path));
    open_arguments(request.messages.back());
  }
}

void read_tools(Fields& fields, const RequestLimits& limits, tessera::ChatRequest& request) {
  const Json::Array* tools = fields.list("tools");
  if (tools == nullptr) return;
  if (tools->size() > limits.tools) fields.refuse("tools", fmt::format("There may be {} tools at most.", limits.tools));
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    Fields tool((*tools)[i], path);
    tool.only("type", "function");
    Fields function(*tool.need(tool.object("function"), "function"), path + ".function");
    (void)function.need(function.text("name"), "name");
    (void)function.text("description");
    (void)function.object("parameters");
    (void)function.boolean("strict");
    request.tools.push_back((*tools)[i]);
  }
}

void restrict_tools(std::vector<Json>& tools, const ToolChoice& choice) {
  const auto name_of = [](const Json& tool) {
    const Json* function = tool.find("function");
    const Json* name = function != nullptr ? function->find("name") : nullptr;
    return name != nullptr && name->string() != nullptr ? *name->string() : std::string();
  };
  if (choice.kind == Kind::none) tools.clear();
  if (!choice.name.empty() && std::ranges::none_of(tools, [&](const Json& tool) { return name_of(tool) == choice.name; })) {
    throw ApiError(400, fmt::format("There is no tool \"{}\".", choice.name), "tool_choice");
  }
  if (choice.allowed.empty()) return;
  std::erase_if(tools, [&](const Json& tool) { return std::ranges::find(choice.allowed, name_of(tool)) == choice.allowed.end(); });
}

}  // namespace

std::string text_of_parts(const Json& content, const std::string& path) {
  if (content.string() != nullptr) return *content.string();
  if (content.elements() == nullptr) throw ApiError(400, "This must be a text or a list of parts.", path);
  // As one text: templates differ in whether they take parts.
  std::string text;
  for (std::size_t i = 0; i < content.elements()->size(); ++i) {
    Fields part((*content.elements())[i], fmt::format("{}[{}]", path, i));
    const std::string kind = part.need(part.text("type"), "type");
    if (kind != "text" && kind != "refusal" && kind != "input_text" && kind != "output_text") {
      part.refuse("type", fmt::format("This server takes text alone, no {}.", kind));
    }
    const std::string_view field = kind == "refusal" ? "refusal" : "text";
    text += part.need(part.text(field), field);
    part.ignore({"annotations", "cache_control", "citations", "logprobs", "prompt_cache_breakpoint"});
    part.done();
  }
  return text;
}

GrammarSource source_of(const AnswerForm& form) {
  // A model that may write white space or digits for ever sometimes does. The order is the schema's, as OpenAI has it.
  return {.kind = form.kind,
          .text = form.text,
          .options = {.space = tessera::JsonSpace::blank, .order = tessera::JsonOrder::stated, .numbers = tessera::JsonNumbers::plain}};
}

void read_guided(Fields& fields, std::optional<AnswerForm>& form) {
  const auto set = [&](std::string_view name, GrammarSource::Kind kind, std::string text) {
    if (form) fields.refuse(name, "An answer has one form: response_format, guided_json, guided_regex or grammar.");
    form = AnswerForm{kind, std::move(text), std::string(name)};
  };
  if (auto regex = fields.text("guided_regex")) set("guided_regex", GrammarSource::Kind::regex, *std::move(regex));
  if (auto grammar = fields.text("grammar")) set("grammar", GrammarSource::Kind::ebnf, *std::move(grammar));
  if (const Json* schema = fields.object("guided_json")) set("guided_json", GrammarSource::Kind::json_schema, closed_schema(*schema).dump());
}

void set_effort(ChatFields& chat, const std::string& effort) {
  chat.effort = effort;
  auto& arguments = chat.wish.request.arguments;
  arguments.emplace_back("reasoning_effort", effort);
  if (effort == "none") arguments.emplace_back("enable_thinking", false);
}

std::optional<AnswerForm> read_form(const Json* json, const std::string& path, bool is_flat) {
  if (json == nullptr) return std::nullopt;
  Fields form(*json, path);
  const std::string type = form.need(form.choice("type", {"text", "json_object", "json_schema"}), "type");
  const bool is_schema = type == "json_schema";
  std::optional<Fields> nested;  // OpenAI's chat nests a schema, the others do not
  if (is_schema && !is_flat) nested.emplace(*form.need(form.object("json_schema"), "json_schema"), path + ".json_schema");
  Fields& inner = nested ? *nested : form;
  const Json* schema = type != "text" ? inner.any("schema") : nullptr;  // llama.cpp: of a json_object too
  if (schema != nullptr && schema->members() == nullptr && schema->boolean() == nullptr) inner.refuse("schema", "This must be a JSON Schema.");
  if (is_schema && is_flat) (void)inner.need(schema, "schema");
  if (is_schema) {
    (void)inner.text("name");
    (void)inner.text("description");
    (void)inner.boolean("strict");
  }
  if (nested) nested->done();
  form.done();
  if (type == "text") return std::nullopt;
  if (schema != nullptr) return AnswerForm{GrammarSource::Kind::json_schema, closed_schema(*schema).dump(), path};
  return AnswerForm{GrammarSource::Kind::json_schema, is_schema ? "{}" : R"({"type": "object"})", path};
}

std::optional<ToolChoice> read_tool_choice(const Json* json, const std::string& path) {
  if (json == nullptr) return std::nullopt;
  ToolChoice choice;
  if (const std::string* word = json->string()) {
    if (*word == "none") choice.kind = Kind::none;
    else if (*word == "required" || *word == "any") choice.kind = Kind::required;
    else if (*word != "auto") throw ApiError(400, "This must be none, auto, required, or an object that names a tool.", path);
    return choice;
  }
  Fields fields(*json, path);
  const std::string type = fields.need(fields.choice("type", {"function", "allowed_tools"}), "type");
  if (type == "function") {
    choice.kind = Kind::required;
    const Json* inner = fields.object("function");
    const Json* name = inner != nullptr ? inner->find("name") : fields.any("name");
    if (name == nullptr || name->string() == nullptr) fields.refuse("function.name", "This field is missing.");
    choice.name = *name->string();
    fields.ignore({"name"});
    fields.done();
    return choice;
  }
  const Json* inner = fields.object("allowed_tools");  // OpenAI's chat nests it, its responses do not
  Fields allowed(inner != nullptr ? *inner : *json, inner != nullptr ? path + ".allowed_tools" : path);
  if (allowed.choice("mode", {"auto", "required"}).value_or("auto") == "required") choice.kind = Kind::required;
  for (const Json& tool : *allowed.need(allowed.list("tools"), "tools")) {
    const Json* function = tool.find("function") != nullptr ? tool.find("function") : &tool;
    const Json* name = function->find("name");
    if (name == nullptr || name->string() == nullptr) allowed.refuse("tools", "Each allowed tool has a name.");
    choice.allowed.push_back(*name->string());
  }
  allowed.ignore({"type"});
  allowed.done();
  if (inner != nullptr) fields.done();
  return choice;
}

ChatFields read_chat(Fields& fields, const RequestLimits& limits) {
  ChatFields chat;
  read_messages(fields, chat.wish.request);
  read_tools(fields, limits, chat.wish.request);
  chat.tools = read_tool_choice(fields.any("tool_choice"), "tool_choice").value_or(ToolChoice{});
  chat.tools.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  chat.form = read_form(fields.object("response_format"), "response_format", false);
  read_guided(fields, chat.form);
  auto& arguments = chat.wish.request.arguments;
  if (const auto effort = fields.choice("reasoning_effort", {"none", "minimal", "low", "medium", "high", "xhigh"})) {
    set_effort(chat, *effort);
  }
  if (const auto budget = fields.integer("thinking_token_budget", 0, 1 << 30)) chat.most_reasoning = static_cast<std::size_t>(*budget);
  if (const Json* more = fields.object("chat_template_kwargs")) {
    for (const auto& [key, value] : *more->members()) {
      std::erase_if(arguments, [&key = key](const auto& each) { return each.first == key; });
      arguments.emplace_back(key, value);
    }
  }
  const auto& messages = chat.wish.request.messages;
  chat.wish.continues = fields.boolean("continue_final_message").value_or(false);
  if (chat.wish.continues && messages.back().role != "assistant") {
    fields.refuse("continue_final_message", "The last message must be the assistant's.");
  }
  (void)fields.boolean("add_generation_prompt");
  return chat;
}

ChatPrompt chat_prompt(const ServedModel& model, ChatFields& chat) {
  auto& tools = chat.wish.request.tools;
  restrict_tools(tools, chat.tools);
  if (chat.tools.kind == Kind::required && tools.empty()) throw ApiError(400, "A call is required, and there are no tools.", "tool_choice");
  return model.prompt(chat.wish);
}

namespace {

// Of an answer of so many tokens; nullopt: all of them may be reasoning.
std::optional<std::size_t> most_reasoning(const ChatFields& chat, std::size_t answer) {
  if (chat.most_reasoning) return chat.most_reasoning;
  constexpr std::pair<std::string_view, double> kShares[] = {{"none", 0.0}, {"minimal", 0.1}, {"low", 0.2}, {"medium", 0.5}, {"high", 0.8}, {"xhigh", 0.95}};
  const auto* share = std::ranges::find(kShares, chat.effort, &std::pair<std::string_view, double>::first);
  if (share == std::end(kShares)) return std::nullopt;
  return static_cast<std::size_t>(share->second * static_cast<double>(answer));
}

}  // namespace

AnswerPlan plan_chat(ServedModel& model, const RequestLimits& limits, const Caller& caller, ChatFields chat, const AnswerFields& answer) {
  ChatPrompt prompt = chat_prompt(model, chat);
  const auto& tools = chat.wish.request.tools;
  std::optional<tessera::Matcher> matcher;
  const tessera::ToolGrammarOptions calls{.use = tessera::ToolUse::required, .name = chat.tools.name,
                                          .max_calls = chat.tools.parallel ? std::size_t{0} : std::size_t{1}, .starts_in_reasoning = prompt.in_reasoning};
  if (chat.tools.kind == Kind::required) {
    matcher = model.tool_matcher(tools, calls);
  } else if (chat.form) {
    matcher = model.answer_matcher(source_of(*chat.form), chat.form->field, prompt, tools, calls);
  } else if (!tools.empty()) {
    auto automatic = calls;
    automatic.use = tessera::ToolUse::automatic;
    matcher = model.tool_matcher(tools, automatic);
  }
  const std::size_t room = answer_room(model, limits, answer, prompt.tokens.size());
  std::optional<tessera::ReasoningBudget> budget;
  if (const auto most = most_reasoning(chat, room)) {
    budget = model.reasoning_budget({.tokens = *most, .starts_in_reasoning = prompt.in_reasoning}, !tools.empty());
    if (!budget && chat.most_reasoning) throw ApiError(400, "This model's answers have no reasoning that could be bounded.", "thinking_token_budget");
  }
  AnswerPlan plan{.request = make_request(model, limits, caller, answer, std::move(prompt.tokens), {.matcher = std::move(matcher), .budget = std::move(budget)}),
                  .chat = AnswerPlan::Chat{.in_reasoning = prompt.in_reasoning, .tools = tools},
                  .shows_logprobs = answer.shows_logprobs};
  plan.request.generate.control_text = tessera::ControlText::show;
  return plan;
}

}  // namespace server
