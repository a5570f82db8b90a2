#include "responses_fields.hpp"

#include <fmt/format.h>

namespace server {

using tessera::Json;
using tessera::Message;

namespace {

Json or_null(const Json* json) { return json != nullptr ? *json : Json(); }

Json text_or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }

// Items as messages. What the assistant thought, said and called in a row is one message of its own.
class Items {
 public:
  explicit Items(std::vector<Message>& messages) : messages_(messages) {}

  void read(const Json& json, const std::string& path) {
    Fields item(json, path);
    take(item);
    item.ignore({"id", "status"});
    item.done();
  }

 private:
  void take(Fields& item) {
    const std::string type = item.text("type").value_or("message");
    if (type == "message") return say(item);
    if (type == "reasoning") return think(item);
    if (type == "function_call") return call(item);
    if (type == "function_call_output") return answer(item);
    if (type == "item_reference") item.refuse("type", "This server stores no items: send the item itself.");
    item.refuse("type", fmt::format("This server does not take items of the type {}.", type));
  }
  void say(Fields& item) {
    item.ignore({"phase"});
    std::string role = item.need(item.choice("role", {"user", "assistant", "system", "developer"}), "role");
    if (role == "developer") role = "system";
    std::string text = text_of_parts(*item.need(item.any("content"), "content"), item.path_of("content"));
    if (role == "assistant") {
      Message& turn = assistant();
      if (turn.content.empty()) turn.content = std::move(text);
      else messages_.push_back({.role = role, .content = std::move(text)});
    } else if (role == "system" && !messages_.empty() && messages_.back().role == "system") {
      messages_.back().content += "\n\n" + text;  // many templates take one
    } else {
      messages_.push_back({.role = role, .content = std::move(text)});
    }
  }
  void think(Fields& item) {
    item.ignore({"encrypted_content"});
    std::string text;
    for (const char* name : {"content", "summary"}) {
      const Json::Array* parts = item.list(name);
      for (std::size_t i = 0; parts != nullptr && text.empty() && i < parts->size(); ++i) {
        Fields part((*parts)[i], fmt::format("{}[{}]", item.path_of(name), i));
        (void)part.choice("type", {"reasoning_text", "summary_text"});
        text += part.need(part.text("text"), "text");
        part.done();
      }
    }
    messages_.push_back({.role = "assistant", .reasoning = std::move(text)});
  }
  void call(Fields& item) {
    tessera::ToolCall call{.id = item.need(item.text("call_id"), "call_id"), .name = item.need(item.text("name"), "name")};
    const std::string text = item.need(item.text("arguments"), "arguments");
    auto object = Json::parse(text);  // templates want the object
    call.arguments = object && object->members() != nullptr ? *std::move(object) : Json(text);
    assistant().tool_calls.push_back(std::move(call));
  }
  void answer(Fields& item) {
    const std::string id = item.need(item.text("call_id"), "call_id");
    Message message{.role = "tool", .content = text_of_parts(*item.need(item.any("output"), "output"), item.path_of("output")), .tool_call_id = id};
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
};

void read_input(Fields& fields, std::vector<Message>& messages) {
  const Json& input = *fields.need(fields.any("input"), "input");
  if (input.string() != nullptr) {
    messages.push_back({.role = "user", .content = *input.string()});
    return;
  }
  if (input.elements() == nullptr) fields.refuse("input", "This must be a text or a list of items.");
  if (input.elements()->empty()) fields.refuse("input", "There must be an item at least.");
  Items items(messages);
  for (std::size_t i = 0; i < input.elements()->size(); ++i) items.read((*input.elements())[i], fmt::format("input[{}]", i));
}

// Tools as the chat has them, {"type": "function", "function": {...}}, from flat ones; and as responses repeat them.
Json::Array read_tools(Fields& fields, const RequestLimits& limits, std::vector<Json>& tools) {
  Json::Array repeated;
  const Json::Array* list = fields.list("tools");
  if (list == nullptr) return repeated;
  if (list->size() > limits.tools) fields.refuse("tools", fmt::format("There may be {} tools at most.", limits.tools));
  for (std::size_t i = 0; i < list->size(); ++i) {
    Fields tool((*list)[i], fmt::format("tools[{}]", i));
    const std::string type = tool.need(tool.text("type"), "type");
    if (type != "function") tool.refuse("type", fmt::format("This server has no {}: tools are functions of the client.", type));
    const std::string name = tool.need(tool.text("name"), "name");
    const auto description = tool.text("description");
    const Json* parameters = tool.object("parameters");
    Object function = Object().set("name", name);
    if (description) function.set("description", *description);
    if (parameters != nullptr) function.set("parameters", *parameters);
    tools.push_back(Object().set("type", "function").set("function", std::move(function)));
    const auto strict = tool.boolean("strict");
    tool.done();
    repeated.push_back(Object()
                           .set("type", "function")
                           .set("name", name)
                           .set("description", text_or_null(description))
                           .set("parameters", or_null(parameters))
                           .set("strict", strict ? Json(*strict) : Json()));
  }
  return repeated;
}

void refuse_what_needs_a_store(Fields& fields) {
  if (fields.boolean("store").value_or(false)) fields.refuse("store", "This server stores no responses: send false.");
  if (fields.any("previous_response_id") != nullptr) {
    fields.refuse("previous_response_id", "This server stores no responses: send the items of the conversation as input.");
  }
  if (fields.any("conversation") != nullptr) {
    fields.refuse("conversation", "This server stores no conversations: send their items as input.");
  }
  fields.only("background", false);
}

void read_include(Fields& fields, AnswerFields& answer) {
  for (const std::string& each : fields.texts("include", 16)) {
    if (each == "message.output_text.logprobs") answer.shows_logprobs = true;
    else if (each != "reasoning.encrypted_content") fields.refuse("include", fmt::format("This server has no {}.", each));  // reasoning comes as it is
  }
  answer.logprobs = static_cast<std::uint32_t>(fields.integer("top_logprobs", 0, 20).value_or(0));
}

}  // namespace

ResponseFields read_response(Fields& fields, const ServedModel& model, const RequestLimits& limits) {
  ResponseFields r;
  tessera::ChatRequest& request = r.chat.wish.request;
  refuse_what_needs_a_store(fields);
  const auto instructions = fields.text("instructions");
  if (instructions && !instructions->empty()) request.messages.push_back({.role = "system", .content = *instructions});
  read_input(fields, request.messages);
  Json::Array tools = read_tools(fields, limits, request.tools);
  const Json* choice = fields.any("tool_choice");
  r.chat.tools = read_tool_choice(choice, "tool_choice").value_or(ToolChoice{});
  r.chat.tools.parallel = fields.boolean("parallel_tool_calls").value_or(true);

  Json form = Object().set("type", "text");
  std::string verbosity = "medium";
  if (const Json* text = fields.object("text")) {
    Fields inner(*text, "text");
    const Json* given = inner.object("format");
    r.chat.form = read_form(given, "text.format", true);
    if (given != nullptr) form = *given;
    verbosity = inner.choice("verbosity", {"low", "medium", "high"}).value_or(verbosity);
    inner.done();
  }
  std::optional<std::string> effort;
  if (const Json* reasoning = fields.object("reasoning")) {
    Fields inner(*reasoning, "reasoning");
    effort = inner.choice("effort", {"none", "minimal", "low", "medium", "high", "xhigh"});
    if (effort) set_effort(r.chat, *effort);
    inner.ignore({"summary", "generate_summary"});  // reasoning is shown as it is
    inner.done();
  }
  AnswerFields& a = r.answer;
  read_drawing(fields, model, a);
  const auto most = fields.integer("max_output_tokens", 1, 1 << 30);
  a.max_tokens = static_cast<std::size_t>(most.value_or(0));
  read_include(fields, a);
  r.streams = fields.boolean("stream").value_or(false);
  if (const Json* options = fields.object("stream_options")) {
    Fields inner(*options, "stream_options");
    inner.ignore({"include_obfuscation"});
    inner.done();
    if (!r.streams) fields.refuse("stream_options", "This is for streams: stream is not true.");
  }
  fields.only("truncation", "disabled");
  const Json* metadata = fields.object("metadata");
  const auto cache_key = fields.text("prompt_cache_key"), safety = fields.text("safety_identifier"), user = fields.text("user");
  const auto calls = fields.integer("max_tool_calls", 1, 1 << 30);  // of tools of the server, which has none
  fields.ignore({"service_tier", "prompt_cache_retention", "prompt_cache_options"});
  fields.done();

  r.repeated.set("background", false)
      .set("instructions", text_or_null(instructions))
      .set("max_output_tokens", most ? Json(*most) : Json())
      .set("max_tool_calls", calls ? Json(*calls) : Json())
      .set("metadata", metadata != nullptr ? *metadata : Json::object())
      .set("parallel_tool_calls", r.chat.tools.parallel)
      .set("previous_response_id", Json())
      .set("prompt_cache_key", text_or_null(cache_key))
      .set("reasoning", Object().set("effort", text_or_null(effort)).set("summary", Json()))
      .set("safety_identifier", text_or_null(safety))
      .set("service_tier", "default")
      .set("store", false)
      .set("temperature", a.temperature)
      .set("text", Object().set("format", std::move(form)).set("verbosity", verbosity))
      .set("tool_choice", choice != nullptr ? *choice : Json("auto"))
      .set("tools", std::move(tools))
      .set("top_logprobs", static_cast<std::int64_t>(a.logprobs))
      .set("top_p", a.top_p)
      .set("truncation", "disabled")
      .set("user", text_or_null(user));
  return r;
}

}  // namespace server
