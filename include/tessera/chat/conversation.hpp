// A conversation with a model: messages in, answers out, and one session that is kept in step with them.
//
//   auto talk = Conversation::create(engine, {.messages = {{.role = "user", .content = "Hi"}}});
//   auto answer = talk->answer(sampler, {.max_tokens = 200});
//   while (auto delta = answer->next()) ...                        // text, reasoning, tool calls, as they come
//   talk->request().messages.push_back({.role = "user", .content = "And then?"});
//
// The messages may be changed in any way between answers: request() is a plain value. What the model reads is always the
// template's text for the messages as they are. Of its tokens, those that the session begins with are kept; what follows
// them in the session is truncated, and the rest is appended. So a new turn costs its own tokens, and an edited or dropped
// one those behind it. The logits are those (==) of a new session that reads everything.
//
// A model without a chat template has plain_chat_template(); has_template() says so.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

#include <tessera/chat/chat_template.hpp>
#include <tessera/chat/message.hpp>
#include <tessera/chat/output_format.hpp>
#include <tessera/chat/output_parser.hpp>
#include <tessera/chat/tool_grammar.hpp>
#include <tessera/core/result.hpp>
#include <tessera/engine.hpp>
#include <tessera/grammar/matcher.hpp>
#include <tessera/session.hpp>

namespace tessera {

struct ConversationOptions {
  std::optional<ChatTemplate> chat_template{};  // instead of the model's
  std::optional<OutputFormat> output_format{};  // instead of the one that the template's text tells
  RenderOptions render{};                       // its `now` stays: another date would be another prompt
  SessionOptions session{};
};

struct ReadOptions {
  std::stop_token stop{};
  std::function<bool(std::size_t done, std::size_t total)> progress{};  // as AppendOptions has it
};

// Tokens of a prompt: all, and those that the session had.
struct ReadSummary {
  std::size_t tokens = 0;
  std::size_t kept = 0;
};

struct AnswerOptions {
  std::size_t max_tokens = 0;  // 0: until the model ends, or the context is full
  // Looked at before every layer. An answer that is stopped ends as one that is done, with what there is of it.
  std::stop_token stop{};
  std::function<bool(std::size_t done, std::size_t total)> progress{};  // of reading the prompt
};

// The answer to the last message. At its end it becomes a message of the conversation. One that is left before its end,
// or that an error ends, does not: the messages stay as they were. It has the conversation to itself while it lives, and
// must not outlive it.
class Answer {
 public:
  Answer(Answer&&) noexcept;
  Answer& operator=(Answer&&) noexcept;
  ~Answer();

  // The next piece of text, reasoning or a call; nullopt after the last. An error is the last element.
  [[nodiscard]] std::optional<Result<OutputDelta>> next() noexcept;

  // max_tokens, end_of_generation, cancelled, error; none while it goes on.
  [[nodiscard]] FinishReason finish_reason() const noexcept;
  [[nodiscard]] Figures figures() const noexcept;
  [[nodiscard]] ReadSummary prompt() const noexcept;  // what the model had to read for it
  // All so far. Calls without an id of the model's own have one: "call00001", counted through the conversation.
  [[nodiscard]] Result<Message> message() const noexcept;

 private:
  friend class Conversation;
  struct State;
  explicit Answer(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// A movable handle, used by one thread at a time.
class Conversation {
 public:
  // Errors: a template or an output format that is none; an engine without a tokenizer; no memory for the session.
  [[nodiscard]] static Result<Conversation> create(const Engine& engine, ChatRequest request = {},
                                                   ConversationOptions options = {}) noexcept;
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) noexcept;
  ~Conversation();

  // Messages, tools and template arguments, for reading and for changing; not during an Answer.
  [[nodiscard]] ChatRequest& request() noexcept;
  [[nodiscard]] const ChatRequest& request() const noexcept;

  // What the model is to read for the request as it is. Errors are the template's.
  [[nodiscard]] Result<std::vector<Token>> prompt() const noexcept;

  // Brings the session in step with prompt(), without answering: session().logits() are those after it. On error (the
  // template's; cache_full: the context is too small; no memory; a stop) the session is as it was; of a contiguous
  // session whose end had to go, that end is gone.
  [[nodiscard]] Result<ReadSummary> read(const ReadOptions& options = {}) noexcept;

  // Reads, and begins an answer with the sampler, which must outlive it. Errors are those of read().
  [[nodiscard]] Result<Answer> answer(Sampler& sampler, const AnswerOptions& options = {}) noexcept;

  // A matcher for the next answer's sampler: the answer calls a tool of the request, in the model's own way of writing calls.
  //
  //   auto sampler = sampling::chain().stage(sampling::GrammarStage{*talk.tool_matcher()}).seed(1).build();
  //
  // Of the options, starts_in_reasoning is seen to. The last grammar is kept, compiled, for when it is asked for again. Errors
  // are those of prompt(), tool_grammar() and CompiledGrammar.
  [[nodiscard]] Result<Matcher> tool_matcher(ToolGrammarOptions options = {}) noexcept;

  [[nodiscard]] const Session& session() const noexcept;
  [[nodiscard]] const ChatTemplate& chat_template() const noexcept;
  [[nodiscard]] const OutputFormat& output_format() const noexcept;
  [[nodiscard]] bool has_template() const noexcept;  // the model's, or one of the options

 private:
  friend class Answer;
  struct State;
  explicit Conversation(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// For models that have none, and so were not taught any roles: BOS, and the texts of the messages, each in a line of its own
// but the assistant's, which goes on from the one before it.
[[nodiscard]] std::string_view plain_chat_template() noexcept;

}  // namespace tessera
