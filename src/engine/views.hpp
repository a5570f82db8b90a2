// Read-only views of Engine::State and Session::State, for decoding and the scheduler. Only src/engine includes the states themselves
// (states.hpp). A view refers to the state: make a new view after each call that changes the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tessera/engine.hpp>
#include <tessera/extend/kv/kv_pools.hpp>

#include "engine/session/session_use.hpp"

namespace tessera::detail {

// Facts about an engine that the public class Engine does not expose.
struct EngineView {
  const EngineOptions& options;  // no value is automatic
  const KvPools& kv_pools;
};
[[nodiscard]] EngineView view_of(const Engine::State& engine) noexcept;

struct SessionView {
  const Engine& engine;
  const std::shared_ptr<const Engine::State>& shared;  // the engine's state
  const std::shared_ptr<SessionUse>& use;
  const KvCache& kv;
  const KvOptions& kv_options;       // no value is automatic
  const StreamOptions& stream;
  std::span<const Token> tokens;     // computed tokens, then pending tokens
  std::span<const Hash128> contents;  // content_hash() of each embedding among `tokens`
  std::uint64_t removed = 0;         // tokens that edits have removed
  std::span<const float> logits;     // logits of the last token  [vocab]; empty if they are not known
  bool has_voted = false;            // true: rows have voted for tokens (TokenBudget)
  std::uint64_t guesses = 0;         // number that begin_guesses() returned last; all earlier TargetGuesses are invalid
  bool shares_last_page = false;     // true: the last page is not full, and another session may use it too

  [[nodiscard]] std::span<const Token> pending() const noexcept { return tokens.subspan(kv.length()); }
  [[nodiscard]] bool has_pending() const noexcept { return tokens.size() > kv.length(); }
  [[nodiscard]] std::uint64_t stream_position() const noexcept { return removed + tokens.size(); }
};
[[nodiscard]] SessionView view_of(const Session::State& session) noexcept;

}  // namespace tessera::detail
