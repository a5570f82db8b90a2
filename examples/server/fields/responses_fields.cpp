#include "fields/responses_fields.hpp"

#include <fmt/format.h>

namespace server {

using tessera::Json;
using tessera::Message;

namespace {

Json text_or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }

// Turns items into messages. Reasoning, texts and calls of the assistant in a row become one message.
class Items {
 public:
  Items(std::vector<Message>& messages, ResponseTools& tools, Notes& notes) : messages_(messages), tools_(tools), notes_(notes) {}

  void read(const Json& json, const std::string& path) {
    Fields item(json, path);
    const std::string type = item.text("type").value_or("message");
    if (type == "message") return say(item);
    if (type == "reasoning") return think(item);
    if (type == "function_call") return call(item, read_arguments(item));
    if (type == "custom_tool_call") return call(item, Object().set("input", item.text("input").value_or("")));
    if (type == "function_call_output" || type == "custom_tool_call_output") return answer(item);
    if (type == "additional_tools") {
      const Json::Array* list = item.list("tools");
      if (list != nullptr) tools_.read(*list, item.path_of("tools"), notes_);
      return;
    }
    if (type == "item_reference") item.refuse("type", "This server stores no items: send the item itself.");
    notes_.leave_out(path, type, "this server does not know items of this type.");
  }

 private:
  void say(Fields& item) {
    std::string role = item.need(item.choice("role", {"user", "assistant", "system", "developer"}), "role");
    if (role == "developer") role = "system";
    const Json* content = item.any("content");
    if (content == nullptr) return;  // no content
    std::string text = text_of_parts(*content, item.path_of("content"), notes_);
    if (role == "assistant") {
      Message& turn = assistant();
      if (turn.content.empty()) turn.content = std::move(text);
      else messages_.push_back({.role = role, .content = std::move(text)});
    } else {
      messages_.push_back({.role = role, .content = std::move(text)});
    }
  }
  void think(Fields& item) {
    std::string text;
    for (const char* name : {"content", "summary"}) {
      const Json::Array* parts = item.list(name);
      for (std::size_t i = 0; parts != nullptr && text.empty() && i < parts->size(); ++i) {
        Fields part((*parts)[i], fmt::format("{}[{}]", item.path_of(name), i));
        (void)part.choice("type", {"reasoning_text", "summary_text", "text"});
        text += part.need(part.text("text"), "text");
      }
    }
    if (!text.empty()) messages_.push_back({.role = "assistant", .reasoning = std::move(text)});  // without text the reasoning is encrypted
  }
  void call(Fields& item, Json arguments) {
    const std::string name = item.need(item.text("name"), "name");
    assistant().tool_calls.push_back({.id = item.need(item.text("call_id"), "call_id"),
                                      .name = ResponseTools::function_of(item.text("namespace").value_or(""), name),
                                      .arguments = std::move(arguments)});
  }
  void answer(Fields& item) {
    const std::string id = item.need(item.text("call_id"), "call_id");
    const Json* output = item.any("output");
    Message message{.role = "tool", .content = output != nullptr ? text_of_parts(*output, item.path_of("output"), notes_) : "", .tool_call_id = id};
    for (const Message& each : messages_) {
      for (const tessera::ToolCall& call : each.tool_calls) {
        if (call.id == id) message.name = call.name;
      }
    }
    if (message.name.empty()) item.refuse("call_id", fmt::format("No function_call before this has the call_id \"{}\".", id));
    messages_.push_back(std::move(message));
  }
  Message& assistant() {
    if (messages_.empty() || messages_.back().role != "assistant") messages_.push_back({.role = "assistant"});
    return messages_.back();
  }

  std::vector<Message>& messages_;
  ResponseTools& tools_;
  Notes& notes_;
};

void read_input(Fields& fields, std::vector<Message>& messages, ResponseTools& tools, Notes& notes) {
  const Json& input = *fields.need(fields.any("input"), "input");
  if (input.string() != nullptr) {
    messages.push_back({.role = "user", .content = *input.string()});
    return;
  }
  if (input.elements() == nullptr) fields.refuse("input", "This must be a text or a list of items.");
  Items items(messages, tools, notes);
  for (std::size_t i = 0; i < input.elements()->size(); ++i) items.read((*input.elements())[i], fmt::format("input[{}]", i));
  // Clients probe a server with an empty list. It becomes an empty message of the user, for templates that need a message.
  if (input.elements()->empty()) messages.push_back({.role = "user"});
}

void read_include(Fields& fields, AnswerFields& answer, Notes& notes) {
  for (const std::string& each : fields.texts("include", 16)) {
    if (each == "message.output_text.logprobs") answer.shows_logprobs = true;
    // reasoning.encrypted_content needs no note, because reasoning is sent unencrypted.
    else if (each != "reasoning.encrypted_content") notes.leave_out("include", each, "this server does not have it.");
  }
  answer.logprobs = static_cast<std::uint32_t>(fields.integer("top_logprobs", 0, 20).value_or(0));
}

// Returns the choice with the model's names of the tools.
ToolChoice by_function(ToolChoice choice, const ResponseTools& tools) {
  if (!choice.name.empty()) choice.name = tools.function_named(choice.space, choice.name);
  for (std::string& name : choice.allowed) name = tools.function_named("", name);
  return choice;
}

}  // namespace

ResponseFields read_response(Fields& fields, const ServedModel& model, const RequestLimits& limits, Notes& notes) {
  ResponseFields r;
  tessera::ChatRequest& request = r.chat.wish.request;
  const auto instructions = fields.text("instructions");
  if (instructions && !instructions->empty()) request.messages.push_back({.role = "system", .content = *instructions});
  const Json::Array* list = fields.list("tools");
  if (list != nullptr) r.tools.read(*list, "tools", notes);
  Json::Array repeated_tools = r.tools.take_repeated();
  read_input(fields, request.messages, r.tools, notes);
  if (r.tools.size() > limits.tools) fields.refuse("tools", fmt::format("There may be {} tools at most.", limits.tools));
  request.tools = r.tools.take_functions();
  r.chat.patterns = r.tools.take_patterns();
  const Json* choice = fields.any("tool_choice");
  r.chat.tools = by_function(read_tool_choice(choice, "tool_choice").value_or(ToolChoice{}), r.tools);
  r.chat.tools.parallel = fields.boolean("parallel_tool_calls").value_or(true);

  Json form = Object().set("type", "text");
  std::string verbosity = "medium";
  if (const Json* text = fields.object("text")) {
    Fields inner(*text, "text");
    const Json* given = inner.object("format");
    r.chat.form = read_form(given, "text.format", true);
    if (given != nullptr) form = *given;
    verbosity = inner.choice("verbosity", {"low", "medium", "high"}).value_or(verbosity);
  }
  read_guided(fields, r.chat.form);
  std::optional<std::string> effort;
  if (const Json* reasoning = fields.object("reasoning")) {
    Fields inner(*reasoning, "reasoning");
    effort = inner.choice("effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
    if (effort) set_effort(r.chat, *effort);
  }
  AnswerFields& a = r.answer;
  read_drawing(fields, model, a);
  const auto most = fields.integer("max_output_tokens", 1, 1 << 30);
  a.max_tokens = static_cast<std::size_t>(most.value_or(0));
  read_include(fields, a, notes);
  r.streams = fields.boolean("stream").value_or(false);
  r.shows_progress = fields.boolean("return_progress").value_or(false);
  if (fields.object("stream_options") != nullptr) {
    if (!r.streams) fields.refuse("stream_options", "This field is for streams: set stream to true, or leave it out.");
  }
  const std::string truncation = fields.choice("truncation", {"disabled", "auto"}).value_or("disabled");
  r.chat.drops_old = truncation == "auto";
  fields.done(notes);

  r.repeated.set("background", false)
      .set("instructions", text_or_null(instructions))
      .set("max_output_tokens", most ? Json(*most) : Json())
      .set("max_tool_calls", Json())
      .set("metadata", Json::object())
      .set("parallel_tool_calls", r.chat.tools.parallel)
      .set("previous_response_id", Json())
      .set("prompt_cache_key", Json())
      .set("reasoning", Object().set("effort", text_or_null(effort)).set("summary", Json()))
      .set("safety_identifier", Json())
      .set("service_tier", "default")
      .set("store", false)
      .set("temperature", a.temperature)
      .set("text", Object().set("format", std::move(form)).set("verbosity", verbosity))
      .set("tool_choice", choice != nullptr ? *choice : Json("auto"))
      .set("tools", std::move(repeated_tools))
      .set("top_logprobs", static_cast<std::int64_t>(a.logprobs))
      .set("top_p", a.top_p)
      .set("truncation", truncation)
      .set("user", Json());
  return r;
}

}  // namespace server
