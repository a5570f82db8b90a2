#include "engine/inside.hpp"

#include "engine/load/identity.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/states.hpp"

namespace tessera::test {
namespace {

// The state was made without const, and while the engine has no sessions nobody else has it.
Engine::State& opened(const Engine& engine) { return const_cast<Engine::State&>(*state_of(engine)); }

}  // namespace

EngineParts parts_of(const Engine& engine) {
  Engine::State& state = opened(engine);
  return {state.model, state.backend, state.kv_pools, state.steps};
}

void adopt_backend(const Engine& engine) {
  Engine::State& state = opened(engine);
  state.identity = detail::make_identity(state.model, *state.backend);
  state.kv_pools = detail::make_kv_pools(state).value();
  state.make_executor();
}

KvCache& kv_of(Session& session) { return state_of(session)->kv; }

bool has_room_for_logits(const Session::State& session) {
  return !session.logits.values().empty() || !session.next_logits.values().empty();
}

}  // namespace tessera::test
