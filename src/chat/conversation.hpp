// What a Conversation and its Answer share.
#pragma once

#include <string>

#include <tessera/chat/conversation.hpp>

namespace tessera {

struct [[gnu::visibility("hidden")]] Conversation::State {
  struct Prompt {
    std::vector<Token> tokens{};
    bool in_reasoning = false;  // where the template itself has begun it
  };
  [[nodiscard]] Result<Prompt> prompt() const;
  Result<ReadSummary> read(std::span<const Token> tokens, const ReadOptions& options);

  Engine engine;
  ChatRequest request;
  ChatTemplate chat_template;
  bool has_template = false;
  OutputFormat format;
  RenderOptions render;
  Session session;

  // For calls that are asked for: made when they are, the compiled one of that key.
  std::optional<GrammarVocabulary> vocabulary{};
  std::optional<CompiledGrammar> compiled{};
  std::string compiled_key{};
};

}  // namespace tessera
