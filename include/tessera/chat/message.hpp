// A conversation as hosts and the common HTTP APIs know it: messages of roles, tool calls and their answers, reasoning,
// and the tools on offer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/json/json.hpp>

namespace tessera {

// A part of a message's content. type "text" has a text; other types ("image", "audio") are the template's business.
struct ContentPart {
  std::string type = "text";
  std::string text{};
  Json::Object extra{};  // further keys, as templates may read them
};

struct ToolCall {
  std::string id{};  // "call_1"; may be empty
  std::string name{};  // of the function
  Json arguments{};  // an object. A host may put a text here, which templates that want an object refuse
};

struct Message {
  std::string role;  // "system", "user", "assistant", "tool", or what else the template knows
  std::string content{};
  std::vector<ContentPart> parts{};  // instead of content, if not empty
  std::string reasoning{};           // what the assistant thought before its answer
  std::vector<ToolCall> tool_calls{};
  std::string tool_call_id{};  // of a tool's answer: the call it answers
  std::string name{};          // of the tool that answers, or of the speaker
  Json::Object extra{};        // further keys; one of a name above takes its place

  // {"role": ..., "content": ...} as transformers and the HTTP APIs write it. A list of parts that are texts alone becomes
  // their text; no tool calls, [] or null, are as if they were not there; arguments that are a text become its object, and
  // "" an empty one. Further keys are kept in extra, and so is a known key of a form that the fields above cannot hold
  // (content that is null, for example). Errors: no object, no role, or arguments that are no object (the place names the call).
  [[nodiscard]] static Result<Message> from_json(const Json& json) noexcept;
  // As templates read it: fields that are empty are left out, but for content, which is "" then.
  [[nodiscard]] Json to_json() const;
};

struct ChatRequest {
  std::vector<Message> messages;
  std::vector<Json> tools{};  // {"type": "function", "function": {"name", "description", "parameters": JSON Schema}}
  bool add_generation_prompt = true;
  Json::Object arguments{};  // of the template: enable_thinking, reasoning_effort, documents, ...

  // {"messages": [...], "tools": [...], "add_generation_prompt": true, ...}; every further key is an argument of the
  // template. Errors name the message by its index.
  [[nodiscard]] static Result<ChatRequest> from_json(const Json& json) noexcept;
  // The variables of a template. tools is null if there are none.
  [[nodiscard]] Json to_json() const;
};

}  // namespace tessera
