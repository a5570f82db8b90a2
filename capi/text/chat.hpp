// The conversation's handle, and the JSON of chats.
#pragma once

#include <memory>
#include <utility>

#include <tessera/conversation/conversation.hpp>
#include <tessera/sampling/sampler.hpp>
#include <tessera/scheduler/request.hpp>

#include "engine.hpp"
#include "options/json_options.hpp"

namespace tessera::c {

struct ConversationState {
  ConversationState(EngineStatePtr of, Conversation with) noexcept
      : engine(std::move(of)), conversation(std::move(with)) {}
  EngineStatePtr engine;
  Conversation conversation;
  const void* answering = nullptr;  // handle of the answer that has not ended; nullptr: none

  // Returns the conversation for a call that changes its messages. Error: invalid_state, an answer has not ended.
  [[nodiscard]] Conversation& change() {
    if (answering == nullptr) return conversation;
    fail(ErrorCode::invalid_state, "an answer has not ended: read it to its end, or free it", "conversation");
  }
};
using ConversationStatePtr = std::shared_ptr<ConversationState>;

// Reads {"messages": [...], "tools": [...], ...}. For an empty text, returns an empty request.
[[nodiscard]] ChatRequest read_chat(const char* json, std::size_t size, std::string_view what);
[[nodiscard]] ConversationOptions read_conversation_options(const Engine& engine, const char* json, std::size_t size);

// The sampler and the options of an answer.
struct AnswerAsked {
  Sampler sampler;
  AnswerOptions options;
  Request request;  // used only with a scheduler
};
[[nodiscard]] AnswerAsked read_answer(ConversationState& of, const char* json, std::size_t size, bool has_scheduler);

struct ShortenAsked {
  bool summarise = false;
  CompactionOptions options;
  Sampler sampler;
};
[[nodiscard]] ShortenAsked read_shorten(EngineState& engine, const char* json, std::size_t size);

}  // namespace tessera::c

struct tessera_conversation : tessera::c::Tagged<tessera::c::Kind::conversation> {
  explicit tessera_conversation(tessera::c::ConversationStatePtr of) noexcept : state(std::move(of)) {}
  tessera::c::ConversationStatePtr state;
};
