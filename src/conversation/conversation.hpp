// The state that a Conversation and its Answer share.
#pragma once

#include <span>
#include <string>

#include <tessera/chat/template_use.hpp>
#include <tessera/conversation/conversation.hpp>

namespace tessera {

struct [[gnu::visibility("hidden")]] Conversation::State {
  struct Prompt {
    std::vector<Token> tokens{};
    bool in_reasoning = false;  // true: the template itself has begun reasoning
  };
  [[nodiscard]] Result<Prompt> prompt() const;
  // Returns the prompt, however long it is.
  [[nodiscard]] Result<Prompt> whole_prompt() const;
  // Checks that no answer is going on. Error: invalid_state.
  [[nodiscard]] Status no_answer() const;
  // Returns the format in which answers are read: Hermes' if the tools are told in words.
  [[nodiscard]] const OutputFormat& answer_format() const { return tells_tools && !request.tools.empty() ? *told_format : format; }
  // Makes a new session if a scheduler has not given the session back.
  Status own_session();
  // Sets the control tokens that the parser sees, and the stretches where stop strings are not looked for, unless the host has set them.
  Status set_text_options(GenerateOptions& options, const Prompt& prompt) const;
  [[nodiscard]] Result<Session> beginning(std::span<const Token> tokens);
  Result<ReadSummary> read(std::span<const Token> tokens, const ReadOptions& options);

  Result<Compaction> replace(std::size_t begin, std::size_t end, std::vector<Message> with, const CompactionOptions& options);

  Engine engine;
  ChatRequest request;
  ChatTemplate chat_template;
  bool has_template = false;
  OutputFormat format;
  RenderOptions render;
  SessionOptions session_options;
  Session session;
  std::size_t context;
  bool session_is_lent = false;  // a scheduler has it
  bool has_answer = false;       // true: an Answer has not ended
  bool tells_tools = false;      // true: tools are told in words, because the template does not print them
  ToolsIn tools_in = ToolsIn::system_message;
  std::optional<OutputFormat> told_format{};

  // For tool_matcher(): made at the first call. `compiled` is the grammar of compiled_key.
  std::optional<GrammarVocabulary> vocabulary{};
  std::optional<CompiledGrammar> compiled{};
  std::string compiled_key{};
  std::vector<std::string> compiled_warnings{};
};

}  // namespace tessera
