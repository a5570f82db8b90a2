// A conversation with a model: messages in, answers out, and one session that is kept in step with them.
//
//   auto talk = Conversation::create(engine, {.messages = {{.role = "user", .content = "Hi"}}});
//   auto answer = talk->answer(sampler, {.max_tokens = 200});
//   while (auto delta = answer->next()) ...                        // text, reasoning, tool calls, as they come
//   if (auto status = answer->status(); !status) ...               // the error that ended it
//   talk->request().messages.push_back({.role = "user", .content = "And then?"});
//
// The messages may be changed in any way between answers: request() is a plain value. What the model reads is always the
// template's text for the messages as they are. Of its tokens, those that the session begins with are kept; what follows
// them in the session is truncated, and the rest is appended. So a new turn costs its own tokens, and an edited or dropped
// one those behind it. The logits are those (==) of a new session that reads everything.
//
// A conversation whose turns are a scheduler's requests: answer(scheduler, {...}). What grows too long: drop_old() and
// summarise_old().
//
// A model without a chat template has plain_chat_template(); has_template() says so.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/chat_template.hpp>
#include <tessera/chat/message.hpp>
#include <tessera/chat/output_format.hpp>
#include <tessera/chat/output_parser.hpp>
#include <tessera/chat/reasoning_budget.hpp>
#include <tessera/chat/tool_grammar.hpp>
#include <tessera/core/result.hpp>
#include <tessera/engine.hpp>
#include <tessera/grammar/matcher.hpp>
#include <tessera/session.hpp>

namespace tessera {

class Scheduler;
struct Request;

// How the output of a generation ended: it is whole where the model ended it, or a stop did.
[[nodiscard]] constexpr OutputEnd output_end(FinishReason reason) noexcept {
  const bool ended = reason == FinishReason::end_of_generation || reason == FinishReason::stop_token || reason == FinishReason::stop_string;
  return ended ? OutputEnd::whole : OutputEnd::cut;
}

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
  std::vector<std::string> stop_strings{};  // end the answer where one of them stands in it; in its reasoning they end nothing
  std::optional<StopFree> stop_free{};      // where stop strings end nothing instead; empty: they end the reasoning too
  // Looked at before every layer. An answer that is stopped ends as one that is done, with what there is of it.
  std::stop_token stop{};
  std::function<bool(std::size_t done, std::size_t total)> progress{};  // of reading the prompt
  SpeculateOptions speculate{};
};

// What becomes of old turns. A turn begins with a message of the user; the system's message, in front, always stays.
struct CompactionOptions {
  std::size_t keep_turns = 2;  // the last ones
  // Of summarise_old(): what the user is made to ask for the summary, and how long that may be.
  std::string question = "Summarise our conversation so far in a few sentences. Keep the names, the numbers, what was decided and "
                         "what is still open.";
  std::size_t max_tokens = 256;
  std::stop_token stop{};
  std::function<bool(std::size_t done, std::size_t total)> progress{};  // of reading
};

struct Compaction {
  std::size_t messages = 0;                       // that are gone; 0: there was nothing old, and nothing has changed
  std::size_t tokens_before = 0, tokens_after = 0;  // of the prompt
  std::size_t kept = 0;                           // of those after: the session had them
  std::string summary{};
};

// The answer to the last message. At its end it becomes a message of the conversation. One that is left before its end,
// or that an error ends, does not: the messages stay as they were. Until it has ended or is destroyed it has the conversation to
// itself: the conversation's functions that read or answer return invalid_state meanwhile. It keeps what it needs of the
// conversation alive.
class Answer {
 public:
  Answer() noexcept;  // an empty handle (docs/headers.md)
  Answer(Answer&&) noexcept;
  Answer& operator=(Answer&&) noexcept;
  ~Answer();

  // Returns the next piece of text, reasoning or a call. nullopt: the answer has ended, or an error has ended it, which
  // status() tells.
  [[nodiscard]] std::optional<OutputDelta> next() noexcept;
  // The error that has ended the answer; success while it goes on and after it has ended well, or was stopped. An error stays.
  [[nodiscard]] Status status() const noexcept;

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
  Conversation() noexcept;  // an empty handle (docs/headers.md)
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) noexcept;
  ~Conversation();

  // Messages, tools and template arguments, for reading and for changing; not during an Answer. Of an empty handle: an empty
  // request that no answer reads.
  [[nodiscard]] ChatRequest& request() noexcept;
  [[nodiscard]] const ChatRequest& request() const noexcept;

  // What the model is to read for the request as it is. Errors are the template's.
  [[nodiscard]] Result<std::vector<Token>> prompt() const noexcept;

  // Brings the session in step with prompt(), without answering: session().logits() are those after it. On error (the
  // template's; cache_full: the context is too small; no memory; a stop) the session is as it was; of a contiguous
  // session whose end had to go, that end is gone.
  [[nodiscard]] Result<ReadSummary> read(const ReadOptions& options = {}) noexcept;

  // Reads, and begins an answer with the sampler, which must outlive it. Errors are those of read(); invalid_state: the Answer
  // before has not ended, and goes on.
  [[nodiscard]] Result<Answer> answer(Sampler& sampler, const AnswerOptions& options = {}) noexcept;

  // The same as a request of a scheduler of this engine, beside its others; the answer is the one that answer() gives, token
  // for token. The request has the sampler, the tenant, the priority and so on; prompt, session and on_piece are the
  // conversation's, and there is one sample. The session is the scheduler's until the answer has ended. If that is left, or the
  // scheduler goes, the conversation begins a new one, whose prompt is in the prefix index as long as nothing has displaced it.
  // Answer::next() waits, or drives the scheduler, as RequestHandle::next() does. Errors are those of read() and
  // Scheduler::submit().
  [[nodiscard]] Result<Answer> answer(Scheduler& scheduler, Request request) noexcept;

  // Takes the messages of old turns out, and brings the session in step: what stands behind the system's message is truncated
  // and the last turns are read again. On error nothing has changed.
  Result<Compaction> drop_old(const CompactionOptions& options = {}) noexcept;
  // In the place of old turns there is one more, in which the user asks for a summary of them and the model, which has written
  // it, gives it. The question stands behind what the session has already read. Of a model that reasons, that is switched off
  // for the summary (`enable_thinking`) if it can be. Errors: those of answer(); invalid_state, the model wrote no text; on
  // error messages and session (if it is paged) are as they were.
  Result<Compaction> summarise_old(Sampler& sampler, const CompactionOptions& options = {}) noexcept;

  // A matcher for the next answer's sampler: the answer calls a tool of the request, in the model's own way of writing calls.
  //
  //   auto sampler = sampling::chain().stage(sampling::GrammarStage{*talk.tool_matcher()}).seed(1).build();
  //
  // Of the options, starts_in_reasoning is seen to. The last grammar is kept, compiled, for when it is asked for again. A tool whose
  // schema cannot be held whole is held as far as it can be, and tool_warnings() says so. Errors are those of prompt(),
  // held_tool_grammar() and CompiledGrammar.
  [[nodiscard]] Result<Matcher> tool_matcher(ToolGrammarOptions options = {}) noexcept;
  // A sentence for each tool that the last tool_matcher() does not hold whole: which tool, and what of it. Until the next one.
  [[nodiscard]] std::span<const std::string> tool_warnings() const noexcept;

  // A stage for the next answer's sampler: it reasons for so many tokens at most. Of the options, starts_in_reasoning is seen
  // to. Errors are those of prompt() and ReasoningBudget.
  [[nodiscard]] Result<ReasoningBudget> reasoning_budget(ReasoningBudgetOptions options) const noexcept;

  [[nodiscard]] const Session& session() const noexcept;
  [[nodiscard]] const ChatTemplate& chat_template() const noexcept;
  [[nodiscard]] const OutputFormat& output_format() const noexcept;
  [[nodiscard]] bool has_template() const noexcept;  // the model's, or one of the options

 private:
  friend class Answer;
  struct State;
  explicit Conversation(std::shared_ptr<State> state) noexcept;
  Result<std::string> summary(std::size_t end, Sampler& sampler, const CompactionOptions& options);
  std::shared_ptr<State> state_;  // an Answer holds it too
  ChatRequest nothing_;           // request() of an empty handle
};

// For models that have none, and so were not taught any roles: BOS, and the texts of the messages, each in a line of its own
// but the assistant's, which goes on from the one before it.
[[nodiscard]] std::string_view plain_chat_template() noexcept;

}  // namespace tessera
