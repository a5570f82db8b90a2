// The state that a Conversation and its Answer share.
#pragma once

#include <span>
#include <string>

#include <tessera/conversation/conversation.hpp>
#include <tessera/extend/chat/template_use.hpp>

#include "engine/adapters/sequence_adapters.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] Conversation::State {
  struct Prompt {
    std::vector<Token> tokens{};
    bool in_reasoning = false;  // true: the rendered prompt ends inside of reasoning, so the answer begins there
  };
  [[nodiscard]] Result<Prompt> prompt() const;
  // Returns the prompt, even if it is longer than the context.
  [[nodiscard]] Result<Prompt> whole_prompt() const;
  // Checks that no Answer of this conversation is unfinished. Error: invalid_state.
  [[nodiscard]] Status no_answer() const;
  // Returns the format in which answers are read: the host's or the model's format, or "hermes" if tools are described in words.
  [[nodiscard]] const OutputFormat& answer_format() const { return tells_tools && !request.tools.empty() ? *told_format : format; }
  // Makes a new session if a request of a scheduler has taken the old session and not returned it.
  Status own_session();
  // Sets in `options` which control tokens the parser must see as text, and in which parts of the answer stop strings do not count. Values
  // that the host has set do not change.
  Status set_text_options(GenerateOptions& options, const Prompt& prompt) const;
  // The beginning of a prompt that the session already has, and the adapters for the whole prompt.
  struct Kept {
    std::size_t tokens = 0;
    detail::SequenceAdapters adapters{};
  };
  // Compares the session with the prompt `tokens`, which will be computed with `adapters`. An adapter with an invocation begins at its last
  // invocation in the whole prompt, wherever the session's tokens end: an answer must not depend on how much of the prompt was computed
  // before.
  [[nodiscard]] Kept kept_of(std::span<const Token> tokens, const detail::SequenceAdapters& adapters) const;
  // Truncates a session to the kept tokens, and sets its adapters.
  static Status keep(Session& session, const Kept& kept);
  // Returns a fork of the session that has only the kept tokens. The request computes the rest of the prompt.
  [[nodiscard]] Result<Session> beginning(const Kept& kept);
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
  bool session_is_lent = false;  // true: a request of a scheduler has the session
  bool has_answer = false;       // true: an Answer has begun and not ended
  bool tells_tools = false;      // true: the template does not print tools, so they are described in words
  ToolsIn tools_in = ToolsIn::system_message;
  std::optional<OutputFormat> told_format{};

  // Cached values of tool_matcher(), made when first needed. `compiled` is the grammar with the key compiled_key.
  std::optional<GrammarVocabulary> vocabulary{};
  std::optional<CompiledGrammar> compiled{};
  std::string compiled_key{};
  std::vector<std::string> compiled_warnings{};
};

}  // namespace tessera
