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
  // Returns the prompt like prompt(), but without an error if it is longer than the context.
  [[nodiscard]] Result<Prompt> whole_prompt() const;
  // Returns an error (invalid_state) if an Answer of this conversation has begun and not ended.
  [[nodiscard]] Status no_answer() const;
  // Returns the format in which the next answer is read: "hermes" if the template does not print tools and the request has some, otherwise
  // the host's or the model's format.
  [[nodiscard]] const OutputFormat& answer_format() const { return tells_tools && !request.tools.empty() ? *told_format : format; }
  // Makes a new session if `session` is lent: a request of a scheduler has taken it and not returned it.
  Status own_session();
  // Sets two options of an answer that the host has not set itself: which control tokens appear in the text, because the parser needs the
  // markers; and in which stretches stop strings have no effect (the reasoning).
  Status set_text_options(GenerateOptions& options, const Prompt& prompt) const;
  // What a session need not compute again: the number of the prompt's first tokens that it has already. Also the adapters for the whole
  // prompt.
  struct Kept {
    std::size_t tokens = 0;
    detail::SequenceAdapters adapters{};
  };
  // Returns how many of the prompt's tokens the session has already computed with the same adapters. `tokens`: the prompt. `adapters`: the
  // adapters with which it will be computed. If an adapter has an invocation, the adapter begins at the last invocation in the whole
  // prompt, even if the session's tokens end before it: an answer must not depend on how much of the prompt was computed before.
  [[nodiscard]] Kept kept_of(std::span<const Token> tokens, const detail::SequenceAdapters& adapters) const;
  // Truncates `session` to the kept tokens, and sets the adapters.
  static Status keep(Session& session, const Kept& kept);
  // Returns a fork of the session that has only the kept tokens: the session of a scheduler's request, which computes the rest of the
  // prompt.
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

  // What tool_matcher() keeps for its next call. `compiled` is the grammar that was compiled last; compiled_key says for which tools and
  // options.
  std::optional<GrammarVocabulary> vocabulary{};
  std::optional<CompiledGrammar> compiled{};
  std::string compiled_key{};
  std::vector<std::string> compiled_warnings{};
};

}  // namespace tessera
