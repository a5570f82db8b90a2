// What a Conversation and its Answer share.
#pragma once

#include <span>
#include <string>

#include <tessera/chat/template_use.hpp>
#include <tessera/conversation/conversation.hpp>

namespace tessera {

struct [[gnu::visibility("hidden")]] Conversation::State {
  struct Prompt {
    std::vector<Token> tokens{};
    bool in_reasoning = false;  // where the template itself has begun it
  };
  [[nodiscard]] Result<Prompt> prompt() const;
  // However long it is.
  [[nodiscard]] Result<Prompt> whole_prompt() const;
  // invalid_state: an answer is on its way.
  [[nodiscard]] Status no_answer() const;
  // How answers are read: where the tools are told in words, as Hermes' are.
  [[nodiscard]] const OutputFormat& answer_format() const { return tells_tools && !request.tools.empty() ? *told_format : format; }
  // Where a scheduler has not given the session back, a new one.
  Status own_session();
  // What of an output is shown to the parser, and where stop strings are not looked for, unless the host says so itself.
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
  bool session_is_lent = false;  // to a scheduler
  bool has_answer = false;       // that has not ended
  bool tells_tools = false;      // in words, as the template does not print them
  ToolsIn tools_in = ToolsIn::system_message;
  std::optional<OutputFormat> told_format{};

  // For calls that are asked for: made when they are, the compiled one of that key.
  std::optional<GrammarVocabulary> vocabulary{};
  std::optional<CompiledGrammar> compiled{};
  std::string compiled_key{};
  std::vector<std::string> compiled_warnings{};
};

}  // namespace tessera
