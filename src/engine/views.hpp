// Views of the states behind Engine and Session, for decoding and the scheduler: only engine/ knows the states themselves (states.hpp). A
// view refers to its state: take it anew after a call that changes the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tessera/engine.hpp>
#include <tessera/extend/kv/kv_pools.hpp>

#include "engine/session/session_use.hpp"

namespace tessera::detail {

// Facts about an engine that its public functions do not tell.
struct EngineView {
  const EngineOptions& options;  // resolved
  const KvPools& kv_pools;
};
[[nodiscard]] EngineView view_of(const Engine::State& engine) noexcept;

struct SessionView {
  const Engine& engine;
  const std::shared_ptr<const Engine::State>& shared;  // the engine's state
  const std::shared_ptr<SessionUse>& use;
  const KvCache& kv;
  const KvOptions& kv_options;       // resolved
  const StreamOptions& stream;
  std::span<const Token> tokens;     // computed tokens, then pending tokens
  std::span<const Hash128> contents;  // content_hash() of each embedding among them
  std::uint64_t removed = 0;         // tokens that edits took out
  std::span<const float> logits;     // logits behind the last token  [vocab]; empty: not known
  bool has_voted = false;            // rows have voted for tokens (TokenBudget)
  std::uint64_t guesses = 0;         // the number that begin_guesses() returned last
  bool shares_last_page = false;     // another session may have the last page, if it is not full

  [[nodiscard]] std::span<const Token> pending() const noexcept { return tokens.subspan(kv.length()); }
  [[nodiscard]] bool has_pending() const noexcept { return tokens.size() > kv.length(); }
  [[nodiscard]] std::uint64_t stream_position() const noexcept { return removed + tokens.size(); }
};
[[nodiscard]] SessionView view_of(const Session::State& session) noexcept;

}  // namespace tessera::detail
