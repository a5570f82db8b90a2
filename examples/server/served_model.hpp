// The model that is served: prompts from messages, and grammars, compiled once for all requests that state the same.
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
#include <tessera/chat/output_format.hpp>
#include <tessera/chat/reasoning_budget.hpp>
#include <tessera/chat/tool_grammar.hpp>
#include <tessera/conversation/conversation.hpp>
#include <tessera/engine.hpp>
#include <tessera/grammar/cache.hpp>
#include <tessera/grammar/matcher.hpp>

#include "notes.hpp"

namespace server {

// What a model reads for a conversation.
struct ChatPrompt {
  std::vector<tessera::Token> tokens{};
  std::string text{};
  bool in_reasoning = false;  // it ends within it
};

// A chat request, and whether its last message, the assistant's own, is to be gone on with rather than answered.
struct ChatWish {
  tessera::ChatRequest request;
  bool continues = false;
};

// Any thread may call.
class ServedModel {
 public:
  // Throws Failure: a template that is none.
  ServedModel(tessera::Engine engine, std::string id, std::optional<tessera::ChatTemplate> chat_template);
  ~ServedModel();

  [[nodiscard]] const tessera::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] const tessera::Tokenizer& tokenizer() const noexcept { return engine_.tokenizer(); }
  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  [[nodiscard]] std::int64_t created() const noexcept { return created_; }  // seconds since 1970
  [[nodiscard]] std::size_t context() const noexcept { return engine_.plan().context; }
  [[nodiscard]] bool has_template() const noexcept { return has_template_; }

  // The template's text; empty: the model has none.
  [[nodiscard]] std::string_view template_source() const noexcept { return has_template_ ? template_.source() : std::string_view(); }
  // Returns whether the template knows of reasoning, and answers are read with it.
  [[nodiscard]] bool reasons() const noexcept;

  // What the model was made for, in Ollama's words: "completion"; "tools" where the template shows tools; "thinking" where it has
  // the markers of reasoning.
  [[nodiscard]] std::vector<std::string> capabilities() const;
  // A sentence where the template writes calls in a form that answers are not read in; else empty.
  [[nodiscard]] std::string calls_warning() const;

  // How answers are read. To models whose template knows no tools, they are told in words, and their calls are Hermes'.
  [[nodiscard]] const tessera::OutputFormat& format(bool has_tools) const noexcept;

  // What GenerateOptions::shown_control and stop_free are for an answer of such a format.
  [[nodiscard]] const std::vector<tessera::Token>& marker_tokens(bool has_tools) const noexcept;
  [[nodiscard]] tessera::StopFree stop_free(bool has_tools, bool in_reasoning) const;

  // Errors of these are ApiError.
  [[nodiscard]] ChatPrompt prompt(const ChatWish& wish) const;
  [[nodiscard]] std::vector<tessera::Token> encode(std::string_view text, bool special = true) const;
  // Of a text without messages.
  [[nodiscard]] tessera::Matcher matcher(const tessera::GrammarSource& source, const std::string& field);
  // Of an answer in a conversation: what it says beside its reasoning is the source's.
  // With tools the answer may be calls instead. Tools whose schemas are not held whole are noted.
  [[nodiscard]] tessera::Matcher answer_matcher(const tessera::GrammarSource& source, const std::string& field, const ChatPrompt& prompt,
                                                const std::vector<tessera::Json>& tools, const tessera::ToolGrammarOptions& calls, Notes& notes);
  // Of an answer that calls tools. nullopt with ToolUse::automatic, if they cannot be held to a grammar.
  [[nodiscard]] std::optional<tessera::Matcher> tool_matcher(const std::vector<tessera::Json>& tools,
                                                             const tessera::ToolGrammarOptions& options, Notes& notes);

  // nullopt: the format has no reasoning.
  [[nodiscard]] std::optional<tessera::ReasoningBudget> reasoning_budget(const tessera::ReasoningBudgetOptions& options, bool has_tools) const;

 private:
  ServedModel(const tessera::Conversation& conversation, std::string id);
  struct Grammars;
  [[nodiscard]] const tessera::GrammarVocabulary& vocabulary(bool has_tools);

  tessera::Engine engine_;
  std::string id_;
  std::int64_t created_;
  bool has_template_, knows_tools_;
  bool takes_system_ = true, takes_later_system_ = true;  // in front; behind other messages
  tessera::ChatTemplate template_;
  tessera::OutputFormat format_, told_format_;
  std::vector<tessera::Token> marker_tokens_, told_marker_tokens_;
  std::unique_ptr<Grammars> grammars_;
};

}  // namespace server
