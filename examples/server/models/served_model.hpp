// A loaded model as the endpoints use it: makes prompts from messages, and compiles grammars. Compiled grammars are kept for later requests
// with the same grammar.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/chat_template.hpp>
#include <tessera/chat/message.hpp>
#include <tessera/conversation/conversation.hpp>
#include <tessera/engine.hpp>
#include <tessera/extend/chat/output_format.hpp>
#include <tessera/extend/chat/reasoning_budget.hpp>
#include <tessera/extend/chat/tool_grammar.hpp>
#include <tessera/extend/grammar/cache.hpp>
#include <tessera/extend/grammar/matcher.hpp>

#include "notes.hpp"

namespace server {

// The prompt of a conversation.
struct ChatPrompt {
  std::vector<tessera::Token> tokens{};
  std::string text{};
  bool in_reasoning = false;  // the prompt ends within reasoning
};

// A chat request. `continues`: the last message is the assistant's, and the answer continues it.
struct ChatWish {
  tessera::ChatRequest request;
  bool continues = false;
};

// Any thread may call.
class ServedModel {
 public:
  // Throws Failure if the template is not valid.
  ServedModel(tessera::Engine engine, std::string id, std::optional<tessera::ChatTemplate> chat_template);
  ~ServedModel();

  [[nodiscard]] const tessera::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] const tessera::Tokenizer& tokenizer() const noexcept { return engine_.tokenizer(); }
  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  [[nodiscard]] std::int64_t created() const noexcept { return created_; }  // seconds since 1970
  [[nodiscard]] std::size_t context() const noexcept { return engine_.plan().context; }
  [[nodiscard]] bool has_template() const noexcept { return has_template_; }

  // Returns the template's text; empty if the model has no template.
  [[nodiscard]] std::string_view template_source() const noexcept { return has_template_ ? template_.source() : std::string_view(); }
  // Returns whether answers may have reasoning (knows_reasoning()).
  [[nodiscard]] bool reasons() const;

  // Returns a sentence if the template writes calls in another form than the form in which answers are read; else an empty text.
  [[nodiscard]] std::string calls_warning() const;

  // Returns the format in which answers are read. If there are tools, but the template does not print tools, the prompt describes the tools
  // in words (tessera::tell_tools_in_words()), and calls are read in the format of Hermes.
  [[nodiscard]] const tessera::OutputFormat& format(bool has_tools) const noexcept;

  // Return the values of GenerateOptions::shown_control and stop_free for an answer in format(has_tools).
  [[nodiscard]] const std::vector<tessera::Token>& marker_tokens(bool has_tools) const noexcept;
  [[nodiscard]] tessera::StopFree stop_free(bool has_tools, bool in_reasoning) const;

  // prompt() and encode() throw ApiError.
  [[nodiscard]] ChatPrompt prompt(const ChatWish& wish) const;
  [[nodiscard]] std::vector<tessera::Token> encode(std::string_view text, bool special = true) const;
  // Returns a matcher for a text that is no answer in a conversation (completions).
  [[nodiscard]] tessera::Matcher matcher(const tessera::GrammarSource& source, const std::string& field);
  // Returns a matcher for an answer in a conversation: the answer's text, without the reasoning, must match the source. If there are tools,
  // the answer may be calls of tools instead. Adds to `notes` each tool whose schema the matcher does not enforce completely.
  [[nodiscard]] tessera::Matcher answer_matcher(const tessera::GrammarSource& source, const std::string& field, const ChatPrompt& prompt,
                                                const std::vector<tessera::Json>& tools, const tessera::ToolGrammarOptions& calls, Notes& notes);
  // Returns a matcher for an answer that may call tools. If no grammar can enforce the calls: with ToolUse::automatic returns nullopt and
  // adds a warning to `notes`, otherwise throws ApiError.
  [[nodiscard]] std::optional<tessera::Matcher> tool_matcher(const std::vector<tessera::Json>& tools,
                                                             const tessera::ToolGrammarOptions& options, Notes& notes);

  // Returns a limit for the reasoning; nullopt if the format has no reasoning.
  [[nodiscard]] std::optional<tessera::ReasoningBudget> reasoning_budget(const tessera::ReasoningBudgetOptions& options, bool has_tools) const;

 private:
  ServedModel(const tessera::Conversation& conversation, std::string id);
  struct Grammars;
  [[nodiscard]] const tessera::GrammarVocabulary& vocabulary(bool has_tools);

  tessera::Engine engine_;
  std::string id_;
  std::int64_t created_;
  bool has_template_, knows_tools_;
  // takes_system_: the template shows system messages at the beginning. takes_later_system_: the template shows them after other messages.
  bool takes_system_ = true, takes_later_system_ = true;
  tessera::ChatTemplate template_;
  tessera::OutputFormat format_, told_format_;
  std::vector<tessera::Token> marker_tokens_, told_marker_tokens_;
  std::unique_ptr<Grammars> grammars_;
};

}  // namespace server
