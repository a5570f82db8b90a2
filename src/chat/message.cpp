#include <tessera/chat/message.hpp>

#include "core/printable.hpp"
#include "core/error.hpp"

namespace tessera {

using namespace detail;

namespace {

Error bad_message(std::string_view what) { return make_error(ErrorCode::invalid_argument, "{}", what); }

// Reads content as a list of parts: [{"type": "text", "text": ...}, ...]. nullopt: an element has data that ContentPart cannot hold.
std::optional<std::vector<ContentPart>> content_parts(const Json::Array& elements) {
  std::vector<ContentPart> parts;
  for (const Json& element : elements) {
    const Json* type = element.find("type");
    if (type == nullptr || type->string() == nullptr) return std::nullopt;
    ContentPart part;
    for (const auto& [key, value] : *element.members()) {
      if (key == "type") part.type = *value.string();
      else if (key == "text" && value.string() != nullptr) part.text = *value.string();
      else part.extra.emplace_back(key, value);
    }
    if (part.type == "text" && element.find("text") == nullptr) return std::nullopt;
    parts.push_back(std::move(part));
  }
  return parts;
}

// If all parts are plain texts, returns them joined to one text. Otherwise returns nullopt.
std::optional<std::string> joined_text(const std::vector<ContentPart>& parts) {
  std::string text;
  for (const ContentPart& part : parts) {
    if (part.type != "text" || !part.extra.empty()) return std::nullopt;
    text += part.text;
  }
  return text;
}

// Returns a call's arguments as an object, as templates expect them. HTTP APIs send the object as a text, and an empty object as "" or
// null.
Result<Json> arguments_from(const Json& value) {
  if (value.is_null()) return Json::object();
  const std::string* text = value.string();
  if (text == nullptr) return value;
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  auto object = Json::parse(*text);
  if (!object) return make_error(ErrorCode::invalid_argument, "the arguments of a call are no JSON object: {}", object.error().text());
  if (object->members() == nullptr) return bad_message("the arguments of a call are no JSON object");
  return *std::move(object);
}

// Makes each call's arguments an object; texts are parsed, and null or blank texts become empty objects. An error names the call.
Status open_arguments(std::vector<ToolCall>& calls) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    auto object = arguments_from(calls[i].arguments);
    if (!object) return error_at(object.error().code(), fmt::format("tool_calls[{}].function.arguments", i), "{}", object.error().message());
    calls[i].arguments = *std::move(object);
  }
  return {};
}

// Reads a list of calls: [{"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}, ...]. nullopt: an element has
// data that ToolCall cannot hold, so the message must keep the list as JSON.
std::optional<std::vector<ToolCall>> calls_from(const Json::Array& elements) {
  std::vector<ToolCall> calls;
  for (const Json& element : elements) {
    const Json* function = element.find("function");
    if (function == nullptr || function->members() == nullptr) return std::nullopt;
    ToolCall call;
    for (const auto& [key, value] : *element.members()) {
      if (key == "id" && value.string() != nullptr) call.id = *value.string();
      else if (key == "type" && value == Json("function")) continue;
      else if (key != "function") return std::nullopt;
    }
    for (const auto& [key, value] : *function->members()) {
      if (key == "name" && value.string() != nullptr) call.name = *value.string();
      else if (key == "arguments") call.arguments = value;
      else return std::nullopt;
    }
    if (call.name.empty()) return std::nullopt;
    calls.push_back(std::move(call));
  }
  return calls;
}

Json to_json(const ContentPart& part) {
  Json json = Json::object();
  json.set("type", part.type);
  if (!part.text.empty() || part.type == "text") json.set("text", part.text);
  for (const auto& [key, value] : part.extra) json.set(key, value);
  return json;
}

Json to_json(const ToolCall& call) {
  Json function = Json::object();
  function.set("name", call.name);
  function.set("arguments", call.arguments.is_null() ? Json::object() : call.arguments);
  Json json = Json::object();
  if (!call.id.empty()) json.set("id", call.id);
  json.set("type", "function");
  json.set("function", std::move(function));
  return json;
}

}  // namespace

Result<Message> Message::from_json(const Json& json) noexcept {
  return guard([&]() -> Result<Message> {
    if (json.members() == nullptr) return bad_message("a message is an object with role and content");
    const Json* speaker = json.find("role");
    if (speaker == nullptr || speaker->string() == nullptr) return bad_message("the message has no role");
    Message message;
    for (const auto& [key, value] : *json.members()) {
      const std::string* text = value.string();
      const Json::Array* elements = value.elements();
      if (key == "role") {
        message.role = *text;
      } else if (key == "content" && text != nullptr) {
        message.content = *text;
      } else if (key == "content" && elements != nullptr && content_parts(*elements)) {
        std::vector<ContentPart> read = *content_parts(*elements);
        if (auto whole = joined_text(read)) message.content = *std::move(whole);
        else message.parts = std::move(read);
      } else if (key == "reasoning_content" && text != nullptr && !text->empty()) {
        message.reasoning = *text;
      } else if (key == "tool_calls" && (value.is_null() || (elements != nullptr && elements->empty()))) {
        continue;  // null or an empty list: some clients send the key with every message
      } else if (key == "tool_calls" && elements != nullptr && calls_from(*elements)) {
        message.tool_calls = *calls_from(*elements);
        TESSERA_TRY_STATUS(open_arguments(message.tool_calls));
      } else if (key == "tool_call_id" && text != nullptr && !text->empty()) {
        message.tool_call_id = *text;
      } else if (key == "name" && text != nullptr && !text->empty()) {
        message.name = *text;
      } else {
        message.extra.emplace_back(key, value);
      }
    }
    return message;
  });
}

Json Message::to_json() const {
  Json json = Json::object();
  json.set("role", role);
  if (!parts.empty()) {
    Json::Array list;
    for (const ContentPart& part : parts) list.push_back(tessera::to_json(part));
    json.set("content", std::move(list));
  } else {
    json.set("content", content);
  }
  if (!reasoning.empty()) json.set("reasoning_content", reasoning);
  if (!tool_calls.empty()) {
    Json::Array list;
    for (const ToolCall& call : tool_calls) list.push_back(tessera::to_json(call));
    json.set("tool_calls", std::move(list));
  }
  if (!tool_call_id.empty()) json.set("tool_call_id", tool_call_id);
  if (!name.empty()) json.set("name", name);
  for (const auto& [key, value] : extra) json.set(key, value);
  return json;
}

Result<ChatRequest> ChatRequest::from_json(const Json& json) noexcept {
  return guard([&]() -> Result<ChatRequest> {
    const Json* list = json.find("messages");
    if (list == nullptr || list->elements() == nullptr) {
      return error_at(ErrorCode::invalid_argument, "messages", "a request is an object with a list of messages");
    }
    ChatRequest request;
    for (const Json& message : *list->elements()) {
      auto parsed = Message::from_json(message);
      if (!parsed) {
        const Error& error = parsed.error();
        std::string place = fmt::format("messages[{}]", request.messages.size());
        if (!error.place().empty()) place += fmt::format(".{}", error.place());
        return error_at(ErrorCode::invalid_argument, std::move(place), "{}", error.message());
      }
      request.messages.push_back(*std::move(parsed));
    }
    for (const auto& [key, value] : *json.members()) {
      if (key == "messages") continue;
      if (key == "tools" && value.elements() != nullptr) {
        request.tools = *value.elements();
      } else if (key == "tools" && value.is_null()) {
        continue;
      } else if (key == "tools") {
        return error_at(ErrorCode::invalid_argument, "tools", "tools are a list");
      } else if (key == "add_generation_prompt" && value.boolean() != nullptr) {
        request.add_generation_prompt = *value.boolean();
      } else {
        request.arguments.emplace_back(key, value);
      }
    }
    return request;
  });
}

Json ChatRequest::to_json() const {
  Json json = Json::object();
  Json::Array list;
  for (const Message& message : messages) list.push_back(message.to_json());
  json.set("messages", std::move(list));
  json.set("tools", tools.empty() ? Json() : Json(tools));
  json.set("add_generation_prompt", add_generation_prompt);
  for (const auto& [key, value] : arguments) json.set(key, value);
  return json;
}

}  // namespace tessera
