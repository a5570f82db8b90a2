// POST /api/chat
#include <algorithm>

#include <fmt/format.h>

#include "answer_wish.hpp"
#include "ollama.hpp"
#include "writer.hpp"

namespace server::ollama {

using tessera::Json;
using tessera::Message;

namespace {

// The calls that no tool has answered yet. Ollama's clients name the tool, not the call; the answers come in the order of the calls.
class OpenCalls {
 public:
  void add(const Message& message) {
    open_.clear();
    for (const tessera::ToolCall& call : message.tool_calls) open_.push_back({call.id, call.name});
  }
  [[nodiscard]] std::string new_id() { return fmt::format("call_{}", made_++); }
  // Fills in a tool's message: the id of the call that the message answers, and the tool's name.
  void settle(Message& answer) {
    const auto is_answered = [&](const Open& call) {
      if (!answer.tool_call_id.empty()) return call.id == answer.tool_call_id;
      return answer.name.empty() || call.name == answer.name;
    };
    const auto found = std::ranges::find_if(open_, is_answered);
    if (found == open_.end()) return;
    answer.tool_call_id = found->id;
    answer.name = found->name;
    open_.erase(found);
  }

 private:
  struct Open {
    std::string id, name;
  };
  std::vector<Open> open_;
  std::size_t made_ = 0;
};

Message read_message(Fields& fields, OpenCalls& calls, Notes& notes) {
  std::string role = fields.need(fields.choice("role", {"system", "developer", "user", "assistant", "tool"}), "role");
  if (role == "developer") role = "system";
  Message message{.role = role, .reasoning = fields.text("thinking").value_or("")};
  if (const Json* content = fields.any("content")) message.content = text_of_parts(*content, fields.path_of("content"), notes);
  message.tool_call_id = fields.text("tool_call_id").value_or("");
  message.name = fields.text("tool_name").value_or("");
  const Json::Array* list = fields.list("tool_calls");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    Fields call((*list)[i], fmt::format("{}[{}]", fields.path_of("tool_calls"), i));
    Fields function(*call.need(call.object("function"), "function"), call.path_of("function"));
    auto id = call.text("id");
    message.tool_calls.push_back({.id = id && !id->empty() ? *std::move(id) : calls.new_id(), .name = function.need(function.text("name"), "name"),
                                  .arguments = read_arguments(function)});
  }
  if (role == "tool") calls.settle(message);
  else calls.add(message);
  return message;
}

// Reads the messages. Without messages, or with an empty list, the request asks to load the model.
void read_messages(Fields& fields, std::vector<Message>& messages, Notes& notes) {
  const Json::Array* list = fields.list("messages");
  OpenCalls calls;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    Fields message((*list)[i], fmt::format("messages[{}]", i));
    messages.push_back(read_message(message, calls, notes));
  }
}

}  // namespace

void chat(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call, kOllamaChat);
  Fields fields(body);
  AnswerWish wish = read_answer_wish(fields, api, call);
  ChatFields chat;
  auto& messages = chat.wish.request.messages;
  read_messages(fields, messages, call.notes);
  read_tools(fields, api.limits, chat, call.notes);
  chat.tools = read_tool_choice(fields.any("tool_choice"), "tool_choice").value_or(ToolChoice{});
  chat.tools.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  fields.done(call.notes);
  if (messages.empty()) {
    call.reply->send(loaded_response(Form::chat, wish.name, wish.unloads));
    return call.on_answered({});
  }
  chat.form = std::move(wish.form);
  chat.drops_old = wish.cuts_prompt;
  chat.wish.continues = messages.back().role == "assistant" && messages.back().tool_calls.empty();
  set_thinking(chat, wish.thinking);

  std::vector<AnswerPlan> plans;
  plans.push_back(plan_chat(model, api.limits, call.caller, std::move(chat), wish.drawing, call.notes));
  auto writer = make_writer({.form = Form::chat, .model = wish.name, .streams = wish.streams, .shows_logprobs = wish.drawing.shows_logprobs, .top = wish.drawing.logprobs},
                            model.tokenizer(), call.reply);
  start_job(api.job, std::move(plans), std::move(writer), call.reply, call.on_answered, call.lease);
}

}  // namespace server::ollama
