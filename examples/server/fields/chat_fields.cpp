#include "fields/chat_fields.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "answers/answer_job.hpp"
#include "fields/closed_schema.hpp"
#include "fields/custom_tools.hpp"
#include "json_object.hpp"

namespace server {

using tessera::GrammarSource;
using tessera::Json;
using tessera::Message;
using Choice = ToolChoice::Kind;

namespace {

// Returns a call of a custom tool from an earlier message, in the form of a function call, which the model knows.
Json function_call(Fields& call) {
  Fields custom(*call.need(call.object("custom"), "custom"), call.path_of("custom"));
  const Object arguments = Object().set("input", custom.text("input").value_or(""));
  return Object()
      .set("id", call.text("id").value_or(""))
      .set("type", "function")
      .set("function", Object().set("name", custom.need(custom.text("name"), "name")).set("arguments", arguments));
}

// Checks one message of a request: those fields that the API knows must have the right form. Returns the message as the template reads it:
// its content as one text, and calls of custom tools as calls of functions. Fields that the API does not know stay.
Json checked(const Json& message, const std::string& path, Notes& notes) {
  Fields fields(message, path);
  (void)fields.need(fields.choice("role", {"system", "developer", "user", "assistant", "tool"}), "role");
  for (const char* name : {"name", "tool_call_id", "reasoning_content", "reasoning"}) (void)fields.text(name);
  const Json::Array* calls = fields.list("tool_calls");
  Json::Array calls_as_functions;
  for (std::size_t i = 0; calls != nullptr && i < calls->size(); ++i) {
    Fields call((*calls)[i], fmt::format("{}.tool_calls[{}]", path, i));
    (void)call.text("id");
    if (call.choice("type", {"function", "custom"}).value_or("function") == "custom") {
      calls_as_functions.push_back(function_call(call));
      continue;
    }
    calls_as_functions.push_back((*calls)[i]);
    Fields function(*call.need(call.object("function"), "function"), call.path_of("function"));
    (void)function.need(function.text("name"), "name");
    (void)read_arguments(function);
  }
  const Json* content = fields.any("content");
  Json flat = message;
  if (calls != nullptr) flat.set("tool_calls", std::move(calls_as_functions));
  if (content != nullptr) flat.set("content", text_of_parts(*content, path + ".content", notes));
  else if (calls != nullptr && !calls->empty()) flat.set("content", Json());  // absent content counts as null
  return flat;
}

void read_messages(Fields& fields, tessera::ChatRequest& request, Notes& notes) {
  const Json::Array& list = *fields.need(fields.list("messages"), "messages");
  if (list.empty()) fields.refuse("messages", "There must be at least one message.");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    Json message = checked(list[i], path, notes);
    const Json* role = message.find("role");
    if (role != nullptr && role->string() != nullptr && *role->string() == "developer") message.set("role", "system");
    if (const Json* reasoning = message.find("reasoning"); reasoning != nullptr && reasoning->string() != nullptr) {
      message.set("reasoning_content", *reasoning->string());
    }
    request.messages.push_back(value_or_refuse(Message::from_json(message), path));
  }
}

// Reads {"type": "custom", "custom": {"name", "description", "format": {"type": "grammar", "grammar": {"syntax", "definition"}}}}.
void read_custom_tool(Fields& tool, ChatFields& chat) {
  Fields custom(*tool.need(tool.object("custom"), "custom"), tool.path_of("custom"));
  const std::string name = custom.need(custom.text("name"), "name");
  if (const Json* given = custom.object("format")) {
    Fields format(*given, custom.path_of("format"));
    if (format.need(format.choice("type", {"text", "grammar"}), "type") == "grammar") {
      Fields grammar(*format.need(format.object("grammar"), "grammar"), format.path_of("grammar"));
      if (auto pattern = custom_pattern(grammar)) chat.patterns.push_back({name, *std::move(pattern)});
    }
  }
  chat.custom_tools.push_back(name);
  chat.wish.request.tools.push_back(custom_function(name, custom.text("description")));
}

}  // namespace

void read_tools(Fields& fields, const RequestLimits& limits, ChatFields& chat, Notes& notes) {
  const Json::Array* tools = fields.list("tools");
  if (tools == nullptr) return;
  if (tools->size() > limits.tools) fields.refuse("tools", fmt::format("There may be {} tools at most.", limits.tools));
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    Fields tool((*tools)[i], path);
    const std::string type = tool.text("type").value_or("function");
    if (type == "custom") {
      read_custom_tool(tool, chat);
      continue;
    }
    if (type != "function") {
      notes.leave_out(path, type, "this server has no tools of its own.");
      continue;
    }
    Fields function(*tool.need(tool.object("function"), "function"), path + ".function");
    (void)function.need(function.text("name"), "name");
    (void)function.text("description");
    (void)function.object("parameters");
    (void)function.boolean("strict");
    chat.wish.request.tools.push_back((*tools)[i]);
  }
}

namespace {

void restrict_tools(std::vector<Json>& tools, const ToolChoice& choice) {
  const auto name_of = [](const Json& tool) {
    const Json* function = tool.find("function");
    const Json* name = function != nullptr ? function->find("name") : nullptr;
    return name != nullptr && name->string() != nullptr ? *name->string() : std::string();
  };
  if (choice.kind == Choice::none) tools.clear();
  if (!choice.name.empty() && std::ranges::none_of(tools, [&](const Json& tool) { return name_of(tool) == choice.name; })) {
    throw ApiError(400, fmt::format("There is no tool \"{}\".", choice.name), "tool_choice");
  }
  if (choice.allowed.empty()) return;
  std::erase_if(tools, [&](const Json& tool) { return std::ranges::find(choice.allowed, name_of(tool)) == choice.allowed.end(); });
}

}  // namespace

Json read_arguments(Fields& function) {
  const Json* given = function.any("arguments");
  if (given == nullptr) return Json::object();
  if (given->members() != nullptr) return *given;
  if (given->string() == nullptr) function.refuse("arguments", "This must be a JSON object, or its text.");
  if (given->string()->find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  auto object = Json::parse(*given->string());
  if (!object) function.refuse("arguments", fmt::format("This text is no JSON object: {}", object.error().text()));
  if (object->members() == nullptr) function.refuse("arguments", "This text is no JSON object.");
  return *std::move(object);
}

std::optional<std::string> text_of_part(Fields& part, Notes& notes) {
  const std::string type = part.need(part.text("type"), "type");
  if (type == "refusal") return part.need(part.text("refusal"), "refusal");
  const Json* source = type == "document" ? part.object("source") : nullptr;
  if (source != nullptr) {
    Fields inner(*source, part.path_of("source"));
    if (inner.text("type").value_or("") == "text") return inner.need(inner.text("data"), "data");
    if (const Json* content = inner.any("content")) return text_of_parts(*content, inner.path_of("content"), notes);
  }
  if (type == "search_result") {
    const Json* content = part.any("content");
    return content != nullptr ? text_of_parts(*content, part.path_of("content"), notes) : std::string();
  }
  if (type == "text" || type == "input_text" || type == "output_text") return part.need(part.text("text"), "text");
  for (const auto& [word, thing] : {std::pair("image", "pictures"), std::pair("audio", "sounds"), std::pair("video", "films"), std::pair("file", "files"),
                                    std::pair("document", "documents other than plain text")}) {
    if (type.find(word) != type.npos) part.refuse("type", fmt::format("This model reads text alone: it takes no {}.", thing));
  }
  if (auto text = part.text("text")) return text;
  notes.leave_out(part.path(), type, "this server does not know this type.");
  return std::nullopt;
}

std::string text_of_parts(const Json& content, const std::string& path, Notes& notes) {
  if (content.string() != nullptr) return *content.string();
  if (content.elements() == nullptr) throw ApiError(400, "This must be a text or a list of parts.", path);
  // Joins the parts to one text, because not all templates accept parts.
  std::string text;
  for (std::size_t i = 0; i < content.elements()->size(); ++i) {
    const Json& each = (*content.elements())[i];
    Fields part(each, fmt::format("{}[{}]", path, i));
    text += text_of_part(part, notes).value_or("");
  }
  return text;
}

GrammarSource source_of(const AnswerForm& form) {
  // `options` limits white space and the digits of numbers, because some models would go on writing these for ever. It also fixes the order
  // of properties to that of the schema, as with OpenAI.
  return {.kind = form.kind,
          .text = form.text,
          .options = {.space = tessera::JsonSpace::blank, .order = tessera::JsonOrder::stated, .numbers = tessera::JsonNumbers::plain}};
}

namespace {

// Reads the fields of an object that state the form of an answer.
class FormReader {
 public:
  FormReader(Fields& fields, std::optional<AnswerForm>& form) : fields_(fields), form_(form) {}

  void regex(std::string_view name) {
    if (auto text = fields_.text(name)) set(name, GrammarSource::Kind::regex, *std::move(text));
  }
  void grammar(std::string_view name) {
    if (auto text = fields_.text(name)) set(name, GrammarSource::Kind::ebnf, *std::move(text));
  }
  // Reads a schema or the text of a schema, as vLLM does.
  void schema(std::string_view name) {
    const Json* given = fields_.any(name);
    if (given == nullptr) return;
    Json schema = *given;
    if (given->string() != nullptr) schema = value_or_refuse(Json::parse(*given->string()), fields_.path_of(name));
    if (schema.members() == nullptr && schema.boolean() == nullptr) fields_.refuse(name, "This must be a JSON Schema.");
    set(name, GrammarSource::Kind::json_schema, closed_schema(schema).dump());
  }
  void choice(std::string_view name) {
    if (fields_.any(name) == nullptr) return;
    const std::vector<std::string> texts = fields_.texts(name, kMostChoices);
    if (texts.empty()) fields_.refuse(name, "There must be at least one text to choose from.");
    std::string any;
    for (const std::string& text : texts) {
      if (!any.empty()) any += '|';
      any += escaped(text);
    }
    set(name, GrammarSource::Kind::regex, std::move(any));
  }
  void any_json(std::string_view name) {
    if (fields_.boolean(name).value_or(false)) set(name, GrammarSource::Kind::json_schema, R"({"type": "object"})");
  }

 private:
  static constexpr std::size_t kMostChoices = 1000;

  static std::string escaped(const std::string& text) {
    std::string pattern;
    for (const char c : text) {
      if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
    return "(?:" + pattern + ")";
  }
  void set(std::string_view name, GrammarSource::Kind kind, std::string text) {
    if (form_) fields_.refuse(name, fmt::format("An answer has one form, but {} states another one: send one of the two fields.", form_->field));
    form_ = AnswerForm{kind, std::move(text), fields_.path_of(name)};
  }

  Fields& fields_;
  std::optional<AnswerForm>& form_;
};

}  // namespace

void read_guided(Fields& fields, std::optional<AnswerForm>& form) {
  FormReader own(fields, form);
  own.regex("guided_regex");
  own.grammar("grammar");
  own.grammar("guided_grammar");
  own.choice("guided_choice");
  own.schema("guided_json");
  own.schema("json_schema");
  if (const Json* outputs = fields.object("structured_outputs")) {
    Fields inner(*outputs, "structured_outputs");
    FormReader nested(inner, form);
    nested.regex("regex");
    nested.grammar("grammar");
    nested.choice("choice");
    nested.schema("json");
    nested.any_json("json_object");
  }
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
  std::optional<Fields> nested;  // OpenAI's chat nests the schema, other APIs do not
  if (is_schema && !is_flat) nested.emplace(*form.need(form.object("json_schema"), "json_schema"), path + ".json_schema");
  Fields& inner = nested ? *nested : form;
  const Json* schema = type != "text" ? inner.any("schema") : nullptr;  // llama.cpp: json_object may have a schema too
  if (schema != nullptr && schema->members() == nullptr && schema->boolean() == nullptr) inner.refuse("schema", "This must be a JSON Schema.");
  if (is_schema && is_flat) (void)inner.need(schema, "schema");
  if (is_schema) {
    (void)inner.text("name");
    (void)inner.text("description");
    (void)inner.boolean("strict");
  }
  if (type == "text") return std::nullopt;
  if (schema != nullptr) return AnswerForm{GrammarSource::Kind::json_schema, closed_schema(*schema).dump(), path};
  return AnswerForm{GrammarSource::Kind::json_schema, is_schema ? "{}" : R"({"type": "object"})", path};
}

std::optional<ToolChoice> read_tool_choice(const Json* json, const std::string& path) {
  if (json == nullptr) return std::nullopt;
  ToolChoice choice;
  if (const std::string* word = json->string()) {
    if (*word == "none") choice.kind = Choice::none;
    else if (*word == "required" || *word == "any") choice.kind = Choice::required;
    else if (*word != "auto") throw ApiError(400, "This must be none, auto, required, or an object that names a tool.", path);
    return choice;
  }
  Fields fields(*json, path);
  const std::string type = fields.need(fields.choice("type", {"function", "custom", "allowed_tools"}), "type");
  if (type != "allowed_tools") {
    choice.kind = Choice::required;
    const Json* inner = fields.object(type);  // OpenAI's Chat Completions API nests the name in an object, its Responses API does not
    const Json* name = inner != nullptr ? inner->find("name") : fields.any("name");
    if (name == nullptr || name->string() == nullptr) fields.refuse("function.name", "This field is missing.");
    choice.name = *name->string();
    if (const Json* space = fields.any("namespace"); space != nullptr && space->string() != nullptr) choice.space = *space->string();
    return choice;
  }
  const Json* inner = fields.object("allowed_tools");  // OpenAI's Chat Completions API nests the list of tools, its Responses API does not
  Fields allowed(inner != nullptr ? *inner : *json, inner != nullptr ? path + ".allowed_tools" : path);
  if (allowed.choice("mode", {"auto", "required"}).value_or("auto") == "required") choice.kind = Choice::required;
  for (const Json& tool : *allowed.need(allowed.list("tools"), "tools")) {
    const Json* nested = tool.find("function") != nullptr ? tool.find("function") : tool.find("custom");
    const Json* name = (nested != nullptr ? nested : &tool)->find("name");
    if (name == nullptr || name->string() == nullptr) allowed.refuse("tools", "Each allowed tool has a name.");
    choice.allowed.push_back(*name->string());
  }
  return choice;
}

ChatFields read_chat(Fields& fields, const RequestLimits& limits, Notes& notes) {
  ChatFields chat;
  read_messages(fields, chat.wish.request, notes);
  read_tools(fields, limits, chat, notes);
  chat.tools = read_tool_choice(fields.any("tool_choice"), "tool_choice").value_or(ToolChoice{});
  chat.tools.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  chat.form = read_form(fields.object("response_format"), "response_format", false);
  read_guided(fields, chat.form);
  auto& arguments = chat.wish.request.arguments;
  if (const auto effort = fields.choice("reasoning_effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"})) {
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
  chat.drops_old = fields.choice("truncation", {"disabled", "auto"}).value_or("") == "auto";
  if (chat.wish.continues && messages.back().role != "assistant") {
    fields.refuse("continue_final_message", "The last message must be the assistant's.");
  }
  (void)fields.boolean("add_generation_prompt");
  return chat;
}

ChatPrompt chat_prompt(const ServedModel& model, ChatFields& chat) {
  auto& tools = chat.wish.request.tools;
  restrict_tools(tools, chat.tools);
  if (chat.tools.kind == Choice::required && tools.empty()) throw ApiError(400, "A call is required, and there are no tools.", "tool_choice");
  return model.prompt(chat.wish);
}

namespace {

// Returns the most tokens of reasoning in an answer of `answer` tokens; nullopt: all tokens may be reasoning.
std::optional<std::size_t> most_reasoning(const ChatFields& chat, std::size_t answer) {
  if (chat.most_reasoning) return chat.most_reasoning;
  constexpr std::pair<std::string_view, double> kShares[] = {{"none", 0.0}, {"minimal", 0.1}, {"low", 0.2}, {"medium", 0.5}, {"high", 0.8}, {"xhigh", 0.95}};
  const auto* share = std::ranges::find(kShares, chat.effort, &std::pair<std::string_view, double>::first);
  if (share == std::end(kShares)) return std::nullopt;
  return static_cast<std::size_t>(share->second * static_cast<double>(answer));
}

// Removes the first turn: the first message that is not a system message, and all messages after it up to the user's next message. Returns
// false, and removes nothing, if only one turn is left.
bool drop_oldest_turn(std::vector<Message>& messages) {
  const auto is_system = [](const Message& message) { return message.role == "system"; };
  const auto begin = std::ranges::find_if_not(messages, is_system);
  if (begin == messages.end()) return false;
  const auto next = std::find_if(begin + 1, messages.end(), [](const Message& message) { return message.role == "user"; });
  if (next == messages.end()) return false;
  messages.erase(begin, next);
  return true;
}

// Returns the tools for the grammar: with the patterns of the inputs of custom tools. The prompt does not show these patterns.
std::vector<Json> with_patterns(std::vector<Json> tools, const std::vector<ToolPattern>& patterns) {
  for (Json& tool : tools) {
    const Json* function = tool.find("function");
    const Json* name = function != nullptr ? function->find("name") : nullptr;
    if (name == nullptr || name->string() == nullptr) continue;
    const auto found = std::ranges::find(patterns, *name->string(), &ToolPattern::tool);
    if (found == patterns.end()) continue;
    Json changed = *function;
    changed.set("parameters", text_parameters(found->pattern));
    tool.set("function", std::move(changed));
  }
  return tools;
}

}  // namespace

AnswerPlan plan_chat(ServedModel& model, const RequestLimits& limits, const Caller& caller, ChatFields chat, const AnswerFields& answer, Notes& notes) {
  ChatPrompt prompt = chat_prompt(model, chat);
  const std::size_t context = context_of(model, answer);
  const std::size_t least = std::max<std::size_t>(std::min(answer.max_tokens != 0 ? answer.max_tokens : context / 8, context / 4), 1);
  std::size_t dropped = 0;
  while (chat.drops_old && prompt.tokens.size() + least > context && drop_oldest_turn(chat.wish.request.messages)) {
    prompt = chat_prompt(model, chat);
    ++dropped;
  }
  if (dropped > 0) notes.warn(fmt::format("The conversation is longer than the context of {} tokens: its oldest turns ({}) are left out.", context, dropped));
  const auto& tools = chat.wish.request.tools;
  const std::vector<Json> held = with_patterns(tools, chat.patterns);
  std::optional<tessera::Matcher> matcher;
  const tessera::ToolGrammarOptions calls{.use = tessera::ToolUse::required, .name = chat.tools.name,
                                          .max_calls = chat.tools.parallel ? std::size_t{0} : std::size_t{1}, .starts_in_reasoning = prompt.in_reasoning};
  if (chat.tools.kind == Choice::required) {
    matcher = model.tool_matcher(held, calls, notes);
  } else if (chat.form) {
    matcher = model.answer_matcher(source_of(*chat.form), chat.form->field, prompt, held, calls, notes);
  } else if (!tools.empty()) {
    auto automatic = calls;
    automatic.use = tessera::ToolUse::automatic;
    matcher = model.tool_matcher(held, automatic, notes);
    if (!matcher && !chat.patterns.empty()) matcher = model.tool_matcher(tools, automatic, notes);
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
  plan.request.generate.shown_control = model.marker_tokens(!tools.empty());
  if (!answer.stops_in_reasoning) plan.request.generate.stop_free = model.stop_free(!tools.empty(), prompt.in_reasoning);
  return plan;
}

}  // namespace server
