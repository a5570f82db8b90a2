#include "fields/messages_fields.hpp"

#include <fmt/format.h>

#include "json_object.hpp"

namespace server {

using tessera::Json;
using tessera::Message;

namespace {

// Collects messages. Consecutive messages of the same role become one turn, as with Anthropic.
class Turns {
 public:
  explicit Turns(std::vector<Message>& messages) : messages_(messages) {}

  Message& of(const std::string& role) {
    if (messages_.empty() || messages_.back().role != role) messages_.push_back({.role = role});
    return messages_.back();
  }
  void say(const std::string& role, const std::string& text, bool begins) {
    Message& turn = of(role);
    if (begins && !turn.content.empty() && !text.empty()) turn.content += "\n\n";
    turn.content += text;
  }
  void answer_call(const std::string& id, std::string text) {
    for (const Message& message : messages_) {
      for (const tessera::ToolCall& call : message.tool_calls) {
        if (call.id != id) continue;
        messages_.push_back({.role = "tool", .content = std::move(text), .tool_call_id = id, .name = std::string(call.name)});
        return;
      }
    }
    throw ApiError(400, fmt::format("No tool_use before this has the id \"{}\".", id), "messages");
  }

 private:
  std::vector<Message>& messages_;
};

void read_block(Turns& turns, const std::string& role, Fields& block, bool begins, Notes& notes) {
  const std::string type = block.need(block.text("type"), "type");
  const bool is_assistant = role == "assistant";
  const auto belongs = [&](bool here) {
    if (!here) block.refuse("type", fmt::format("A block {} does not stand in a message of the {}.", type, role));
  };
  if (type == "tool_result") {
    belongs(!is_assistant);
    const Json* content = block.any("content");
    const std::string text = content != nullptr ? text_of_parts(*content, block.path_of("content"), notes) : "";
    const bool failed = block.boolean("is_error").value_or(false);
    return turns.answer_call(block.need(block.text("tool_use_id"), "tool_use_id"), (failed ? "Error: " : "") + text);
  }
  if (type == "thinking" || type == "redacted_thinking") {  // the latter is encrypted
    belongs(is_assistant);
    if (const auto text = block.text("thinking"); text && !text->empty()) turns.of(role).reasoning += *text;
    return;
  }
  if (type == "tool_use") {
    belongs(is_assistant);
    tessera::ToolCall call{.id = block.need(block.text("id"), "id"), .name = block.need(block.text("name"), "name")};
    const Json* input = block.object("input");
    call.arguments = input != nullptr ? *input : Json::object();
    turns.of(role).tool_calls.push_back(std::move(call));
    return;
  }
  if (const auto text = text_of_part(block, notes)) turns.say(role, *text, begins);
}

void read_turns(Fields& fields, std::vector<Message>& messages, Notes& notes) {
  const Json::Array& list = *fields.need(fields.list("messages"), "messages");
  if (list.empty()) fields.refuse("messages", "There must be at least one message.");
  Turns turns(messages);
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields message(list[i], fmt::format("messages[{}]", i));
    std::string role = message.need(message.choice("role", {"user", "assistant", "system", "developer"}), "role");
    if (role == "developer") role = "system";
    const Json* content = message.any("content");
    if (content == nullptr) continue;  // no content
    if (content->elements() == nullptr) {
      turns.say(role, text_of_parts(*content, message.path_of("content"), notes), true);
      continue;
    }
    for (std::size_t k = 0; k < content->elements()->size(); ++k) {
      Fields block((*content->elements())[k], fmt::format("messages[{}].content[{}]", i, k));
      read_block(turns, role, block, k == 0, notes);
    }
  }
  if (messages.empty()) fields.refuse("messages", "These messages have no text.");
}

void read_tools(Fields& fields, const RequestLimits& limits, std::vector<Json>& tools, Notes& notes) {
  const Json::Array* list = fields.list("tools");
  if (list == nullptr) return;
  if (list->size() > limits.tools) fields.refuse("tools", fmt::format("There may be {} tools at most.", limits.tools));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    Fields tool((*list)[i], path);
    if (const std::string type = tool.text("type").value_or("custom"); type != "custom") {
      notes.leave_out(path, type, "this server has no tools of its own, and knows none by its type alone.");
      continue;
    }
    Object function = Object().set("name", tool.need(tool.text("name"), "name"));
    if (auto description = tool.text("description")) function.set("description", *std::move(description));
    function.set("parameters", *tool.need(tool.object("input_schema"), "input_schema"));
    tools.push_back(Object().set("type", "function").set("function", std::move(function)));
  }
}

ToolChoice read_choice(Fields& fields) {
  ToolChoice choice;
  const Json* given = fields.object("tool_choice");
  if (given == nullptr) return choice;
  Fields inner(*given, "tool_choice");
  const std::string type = inner.need(inner.choice("type", {"auto", "any", "tool", "none"}), "type");
  if (type == "none") choice.kind = ToolChoice::Kind::none;
  if (type == "any" || type == "tool") choice.kind = ToolChoice::Kind::required;
  if (type == "tool") choice.name = inner.need(inner.text("name"), "name");
  choice.parallel = !inner.boolean("disable_parallel_tool_use").value_or(false);
  return choice;
}

// Reads `thinking`. Returns true if the request demands reasoning ("enabled"). Without the field, and with "adaptive", the template decides
// whether the answer has reasoning.
bool read_thinking(Fields& fields, ChatFields& chat) {
  const Json* given = fields.object("thinking");
  if (given == nullptr) return false;
  Fields thinking(*given, "thinking");
  const std::string type = thinking.need(thinking.choice("type", {"enabled", "disabled", "adaptive"}), "type");
  const std::int64_t budget = type == "enabled" ? thinking.integer("budget_tokens", 1, 1 << 30).value_or(0) : 0;
  chat.hides_reasoning = thinking.choice("display", {"summarized", "omitted"}).value_or("") == "omitted";  // else shown unchanged
  if (type == "adaptive") return false;
  auto& arguments = chat.wish.request.arguments;
  arguments.emplace_back("enable_thinking", type == "enabled");
  if (budget > 0) {
    arguments.emplace_back("thinking_budget", budget);
    chat.most_reasoning = static_cast<std::size_t>(budget);
  }
  return type == "enabled";
}

}  // namespace

ChatFields read_messages_chat(Fields& fields, const RequestLimits& limits, Notes& notes) {
  ChatFields chat;
  tessera::ChatRequest& request = chat.wish.request;
  if (const Json* system = fields.any("system")) {
    std::string text = text_of_parts(*system, "system", notes);
    if (!text.empty()) request.messages.push_back({.role = "system", .content = std::move(text)});
  }
  read_turns(fields, request.messages, notes);
  read_tools(fields, limits, request.tools, notes);
  chat.tools = read_choice(fields);
  const bool thinks = read_thinking(fields, chat);
  if (const Json* config = fields.object("output_config")) {
    Fields inner(*config, "output_config");
    if (const auto effort = inner.choice("effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"})) set_effort(chat, *effort);
    chat.form = read_form(inner.object("format"), "output_config.format", true);
  }
  if (const Json* format = fields.object("output_format")) {  // the older name of output_config's field
    if (chat.form) fields.refuse("output_format", "An answer has one form, but output_config.format states another one: send one of the two fields.");
    chat.form = read_form(format, "output_format", true);
  }
  read_guided(fields, chat.form);
  chat.drops_old = fields.choice("truncation", {"disabled", "auto"}).value_or("") == "auto";
  const Message& last = request.messages.back();
  if (last.role == "assistant") {
    if (!last.tool_calls.empty()) fields.refuse("messages", "The last message calls tools; their results (tool_result) must follow.");
    if (thinks) fields.refuse("thinking", "The last message begins the answer, so no thinking can come before it.");
    chat.wish.continues = true;
  }
  return chat;
}

}  // namespace server
