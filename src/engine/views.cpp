#include "engine/views.hpp"

#include "engine/states.hpp"

namespace tessera::detail {

EngineView view_of(const Engine::State& engine) noexcept { return {.options = engine.options, .kv_pools = *engine.kv_pools}; }

SessionView view_of(const Session::State& session) noexcept {
  return {.engine = session.engine,
          .shared = session.shared,
          .use = session.use,
          .kv = session.kv,
          .kv_options = session.kv_options,
          .stream = session.stream,
          .tokens = session.tokens,
          .contents = session.contents,
          .removed = session.removed,
          .logits = session.knows_logits() ? session.last_logits() : std::span<const float>(),
          .has_voted = session.votes.voted > 0,
          .guesses = session.guesses,
          .shares_last_page = session.shares_last_page};
}

}  // namespace tessera::detail
