// A conversation with a model: messages in, answers out. A Conversation has one session, and keeps the session's tokens equal to the
// rendered messages.
//
//   auto talk = Conversation::create(engine, {.messages = {{.role = "user", .content = "Hi"}}});
//   auto answer = talk->answer(sampler, {.max_tokens = 200});
//   while (auto delta = answer->next()) std::fputs(delta->text.c_str(), stdout);   // text, reasoning, tool calls, as they come
//   if (auto status = answer->status(); !status) std::fputs(status.error().text().c_str(), stderr);
//   talk->request().messages.push_back({.role = "user", .content = "And then?"});
//
// You may change the messages in any way between answers: request() is a plain value. The model always reads the text that the template
// makes of the present messages. Before each answer the session is compared with this text: its first tokens stay as far as they are equal,
// the other tokens are truncated, and the rest of the text is appended. So a new turn costs only its own tokens; after a change of an
// earlier message, all tokens from that message on are computed again. The logits are equal (==) to the logits of a new session that reads
// everything.
//
// A scheduler can compute the answers too: answer(scheduler, {...}). drop_old() and summarise_old() shorten a conversation that grows too
// long.
//
// If the model has no chat template, plain_chat_template() is used, and has_template() returns false.
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
#include <tessera/core/result.hpp>
#include <tessera/engine.hpp>
#include <tessera/extend/chat/output_format.hpp>
#include <tessera/extend/chat/output_parser.hpp>
#include <tessera/extend/chat/reasoning_budget.hpp>
#include <tessera/extend/chat/tool_grammar.hpp>
#include <tessera/extend/grammar/matcher.hpp>
#include <tessera/session.hpp>

namespace tessera {

class Scheduler;
struct Request;

// Returns `whole` if the model, a stop token or a stop string ended the output, otherwise `cut`. For OutputParser::finish().
[[nodiscard]] constexpr OutputEnd output_end(FinishReason reason) noexcept {
  const bool ended = reason == FinishReason::end_of_generation || reason == FinishReason::stop_token || reason == FinishReason::stop_string;
  return ended ? OutputEnd::whole : OutputEnd::cut;
}

struct ConversationOptions {
  std::optional<ChatTemplate> chat_template{};  // nullopt: the model's
  std::optional<OutputFormat> output_format{};  // nullopt: chosen by the template (choose_output_format())
  RenderOptions render{};                       // used for every prompt, so that the date (`now`) stays the same in all of them
  SessionOptions session{};
};

struct ReadOptions {
  std::stop_token stop{};
  std::function<bool(std::size_t done, std::size_t total)> progress{};  // see AppendOptions::progress
};

struct ReadSummary {
  std::size_t tokens = 0;  // tokens of the prompt
  std::size_t kept = 0;    // tokens of the prompt that the session had already
};

struct AnswerOptions {
  std::size_t max_tokens = 0;  // 0: until the model ends, or the context is full
  std::vector<std::string> stop_strings{};  // texts that end the answer
  // Stretches of the output in which stop strings do not end the answer. nullopt: the reasoning is such a stretch. An empty StopFree: there
  // are no such stretches.
  std::optional<StopFree> stop_free{};
  // Checked before every layer. If a stop is requested, the answer ends without an error, with the text so far (FinishReason::cancelled).
  std::stop_token stop{};
  std::function<bool(std::size_t done, std::size_t total)> progress{};  // while the prompt is read: see AppendOptions::progress
  SpeculateOptions speculate{};
};

// Options for removing old turns (drop_old(), summarise_old()). A turn begins with a message of the user. System messages at the beginning
// always stay.
struct CompactionOptions {
  std::size_t keep_turns = 2;  // last turns that stay
  // Only for summarise_old(): the user's question that asks for a summary, and the largest number of tokens of the summary.
  std::string question = "Summarise our conversation so far in a few sentences. Keep the names, the numbers, what was decided and "
                         "what is still open.";
  std::size_t max_tokens = 256;
  std::stop_token stop{};
  std::function<bool(std::size_t done, std::size_t total)> progress{};  // while the prompt is read: see AppendOptions::progress
};

struct Compaction {
  std::size_t messages = 0;                       // messages that were taken out; 0: none was old, and nothing has changed
  std::size_t tokens_before = 0, tokens_after = 0;  // tokens of the prompt
  std::size_t kept = 0;                           // tokens of the new prompt (of tokens_after) that the session had already
  std::string summary{};                          // the text of summarise_old()
};

// The model's answer to the last message, while it is being written. When the answer ends, it becomes a message of the conversation.
// Exceptions: it becomes no message if the Answer is destroyed before its end, if an error ends it, or if it is stopped before its first
// text. Until the answer has ended or is destroyed, functions of the conversation that read or answer return invalid_state. The
// Conversation may be destroyed before the Answer.
//
//   auto answer = talk.answer(sampler);
//   while (auto delta = answer->next()) std::fputs(delta->text.c_str(), stdout);
//   if (answer->status()) std::fputs(answer->message()->reasoning.c_str(), stderr);
class Answer {
 public:
  Answer() noexcept;  // an empty handle (docs/headers.md)
  Answer(Answer&&) noexcept;
  Answer& operator=(Answer&&) noexcept;
  ~Answer();

  // Returns the next piece of text, reasoning or a tool call. nullopt: the answer has ended; if an error ended it, status() has the error.
  // Each tool call that begins also has a call_end, unless an error ends the answer. If the answer ends within a tool call (max_tokens, a
  // stop), its call_end is `broken`.
  [[nodiscard]] std::optional<OutputDelta> next() noexcept;
  // Returns the error that ended the answer. Success: the answer goes on, has ended without an error, or was stopped. Later calls return
  // the same error.
  [[nodiscard]] Status status() const noexcept;

  // Returns the reason for which the answer ended; FinishReason::none while it goes on.
  [[nodiscard]] FinishReason finish_reason() const noexcept;
  [[nodiscard]] Figures figures() const noexcept;
  [[nodiscard]] ReadSummary prompt() const noexcept;  // tokens of this answer's prompt, and how many of them were not computed again
  // Returns the answer so far. A tool call to which the model gave no id gets one: "call00001" and so on, numbered through the whole
  // conversation.
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
  // Makes a conversation. Errors: those of the template and of the output format; unsupported, an engine without a tokenizer, or a session
  // with a window (StreamOptions) or a token budget; out_of_memory.
  [[nodiscard]] static Result<Conversation> create(const Engine& engine, ChatRequest request = {},
                                                   ConversationOptions options = {}) noexcept;
  Conversation() noexcept;  // an empty handle (docs/headers.md)
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) noexcept;
  ~Conversation();

  // Returns the messages, tools and template arguments. You may change them, but not while an Answer goes on. An empty handle returns an
  // empty request, and changes of it have no effect.
  [[nodiscard]] ChatRequest& request() noexcept;
  [[nodiscard]] const ChatRequest& request() const noexcept;

  // Returns the tokens that the model is to read for the request as it is. Errors: the template's; cache_full, the context is too small.
  [[nodiscard]] Result<std::vector<Token>> prompt() const noexcept;

  // Makes the session's tokens equal to prompt(), without answering. Afterwards session().logits() are the logits after the prompt. Errors:
  // those of prompt(); out_of_memory; cancelled; invalid_state, an Answer has not ended. After an error the session is as it was.
  // Exception: a contiguous session has lost the tokens that were truncated to make place for the new ones.
  [[nodiscard]] Result<ReadSummary> read(const ReadOptions& options = {}) noexcept;

  // Reads the prompt as read() does, and begins an answer with the sampler, which must outlive the answer. Errors: those of read() and of
  // the sampler. If an earlier Answer has not ended, the error is invalid_state, and the earlier Answer goes on undisturbed.
  [[nodiscard]] Result<Answer> answer(Sampler& sampler, const AnswerOptions& options = {}) noexcept;

  // Begins an answer that a scheduler of this engine computes, as one of its requests. The answer has the same tokens as with
  // answer(sampler). Set the request's sampler, tenant, priority and so on. Leave prompt, session, on_piece and samples as they are: the
  // conversation sets them.
  // The scheduler has the session until the answer has ended. If the answer or the scheduler is destroyed before that, the conversation
  // makes a new session, which finds the prompt's pages in the prefix index, unless they have been evicted. Answer::next() waits, or drives
  // the scheduler, as RequestHandle::next() does.
  // Errors: those of read() and Scheduler::submit(); invalid_argument, you have set a field that the conversation sets; invalid_state, a
  // contiguous session.
  [[nodiscard]] Result<Answer> answer(Scheduler& scheduler, Request request) noexcept;

  // Changes the adapters with which the conversation is computed, as Session::use_adapters() does. The messages stay. The next read() or
  // answer() computes the tokens again whose keys and values the new adapters change. Errors: those of Session::use_adapters();
  // invalid_state, an Answer has not ended.
  Status use_adapters(std::span<const AdapterUse> adapters) noexcept;

  // Removes the messages of old turns. The tokens of the system messages at the beginning stay in the session; the turns that stay are
  // computed again, because they move up. After an error the messages are as they were, and so is a paged session.
  Result<Compaction> drop_old(const CompactionOptions& options = {}) noexcept;
  // Replaces old turns by one turn, in which the user asks for a summary and the model writes one. To write it, the model reads the
  // conversation up to the last old turn, with the question after it. The session has the tokens of this beginning already, so they are not
  // computed again. If the template can switch reasoning off (`enable_thinking`), the summary is written without reasoning. Errors: those
  // of answer(); invalid_state, the model wrote no text. After an error the messages are as they were, and so is a paged session.
  Result<Compaction> summarise_old(Sampler& sampler, const CompactionOptions& options = {}) noexcept;

  // Returns a matcher for the sampler of the next answer. The matcher makes the answer call one of the request's tools, in the model's own
  // format of calls. `options.use` says which other output is allowed.
  //
  //   auto sampler = sampling::chain().stage(sampling::GrammarStage{*talk.tool_matcher()}).seed(1).build();
  //
  // The function sets options.starts_in_reasoning itself. It keeps the grammar that it compiled last, for the next call with the same
  // options and tools. If a tool's schema cannot be enforced in full, the matcher enforces as much of it as possible, and tool_warnings()
  // says what is missing. Errors: those of prompt(), held_tool_grammar() and CompiledGrammar::create().
  [[nodiscard]] Result<Matcher> tool_matcher(ToolGrammarOptions options = {}) noexcept;
  // Returns warnings of the last tool_matcher(): a sentence for each tool whose schema is not enforced in full. The sentence names the tool
  // and the part of the schema that is not enforced. Valid until the next tool_matcher().
  [[nodiscard]] std::span<const std::string> tool_warnings() const noexcept;

  // Returns a stage for the sampler of the next answer. The stage ends the reasoning after options.tokens tokens. The function sets
  // options.starts_in_reasoning itself. Errors: those of prompt() and ReasoningBudget::create().
  [[nodiscard]] Result<ReasoningBudget> reasoning_budget(ReasoningBudgetOptions options) const noexcept;

  [[nodiscard]] const Session& session() const noexcept;
  [[nodiscard]] const ChatTemplate& chat_template() const noexcept;
  [[nodiscard]] const OutputFormat& output_format() const noexcept;
  [[nodiscard]] bool has_template() const noexcept;  // the model or the options have one; false: plain_chat_template() is used

 private:
  friend class Answer;
  struct State;
  explicit Conversation(std::shared_ptr<State> state) noexcept;
  Result<std::string> summary(std::size_t end, Sampler& sampler, const CompactionOptions& options);
  std::shared_ptr<State> state_;  // an Answer holds it too
  ChatRequest nothing_;           // request() of an empty handle
};

// Returns the template that is used for models without a chat template (such models were not trained with roles). It prints BOS, then the
// text of each message in a new line. Exception: an assistant's text continues the line of the text before it.
[[nodiscard]] std::string_view plain_chat_template() noexcept;

// Returns the chat template for conversations with this engine. `source`: the text of a template. nullopt: the model's template, or
// plain_chat_template() if the model has none. bos_token, eos_token and so on have the texts of the engine's tokenizer. Errors:
// invalid_state, the engine is empty; those of ChatTemplate::parse().
[[nodiscard]] Result<ChatTemplate> chat_template_of(const Engine& engine, std::optional<std::string_view> source = {}) noexcept;

}  // namespace tessera
