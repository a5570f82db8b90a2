// Puts a backend of a test's around an engine's own.
#pragma once

#include <memory>
#include <utility>

#include "engine/load/identity.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/models.hpp"
#include "engine/states.hpp"

namespace tessera::test {

// What an Engine holds: an explicit instantiation may name a private member, and a friend of it hands that out.
const std::shared_ptr<const Engine::State>& state_of(const Engine& engine);
template <std::shared_ptr<const Engine::State> Engine::*member>
struct OpenEngine {
  friend const std::shared_ptr<const Engine::State>& state_of(const Engine& engine) { return engine.*member; }
};
template struct OpenEngine<&Engine::state_>;

// The engine computes with Wrapper(its backend, args...), which lives as long as the engine. It has no sessions yet.
template <class Wrapper, class... Args>
Wrapper& wrap_backend(const Engine& engine, Args&&... args) {
  auto& state = const_cast<Engine::State&>(*state_of(engine));  // made without const, and nobody else has it yet
  auto wrapper = std::make_unique<Wrapper>(std::move(state.backend), std::forward<Args>(args)...);
  Wrapper& made = *wrapper;
  state.backend = std::move(wrapper);
  state.identity = detail::make_identity(state.model, *state.backend);
  state.kv_pools = must(detail::make_kv_pools(state));
  state.make_executor();
  return made;
}

}  // namespace tessera::test
