// The engine's handle, with the vocabulary and the grammars that it keeps.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include <tessera/engine.hpp>
#include <tessera/extend/grammar/cache.hpp>

#include "call.hpp"

namespace tessera::c {

// An engine and its grammars. The engine's handle and all handles made from the engine share one state.
class EngineState {
 public:
  explicit EngineState(Engine of) noexcept : engine(std::move(of)) {}
  const Engine engine;

  // Returns the compiled grammar of a source, from the engine's cache or compiled now. Any thread.
  [[nodiscard]] CompiledGrammar grammar(const GrammarSource& source);
  [[nodiscard]] CompiledGrammar compile(const Grammar& grammar);

  // Check that tokens are in the vocabulary. Error: invalid_argument, at `place` (a parameter, or a key and an index).
  void check_token(Token token, std::string_view place) const;
  void check_tokens(std::span<const Token> tokens, std::string_view place) const;

 private:
  GrammarCache& cache();

  std::mutex mutex_;
  GrammarVocabulary vocabulary_;  // made by the first grammar, under mutex_
  std::unique_ptr<GrammarCache> cache_;
};
using EngineStatePtr = std::shared_ptr<EngineState>;

}  // namespace tessera::c

struct tessera_engine : tessera::c::Tagged<tessera::c::Kind::engine> {
  explicit tessera_engine(tessera::c::EngineStatePtr of) noexcept : state(std::move(of)) {}
  tessera::c::EngineStatePtr state;
};
