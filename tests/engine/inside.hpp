// What engines and sessions hold, for tests of what is below their public functions. Only inside.cpp sees
// engine/states.hpp; tests see the parts named here, and engine/views.hpp.
#pragma once

#include <memory>
#include <optional>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "backend/backend.hpp"
#include "model/model.hpp"
#include "model/step/step_executor.hpp"

namespace tessera::test {

// An explicit instantiation may name private members, and a friend of it hands them out.
const std::shared_ptr<const Engine::State>& state_of(const Engine& engine);
template <std::shared_ptr<const Engine::State> Engine::*kMember>
struct OpenedEngine {
  friend const std::shared_ptr<const Engine::State>& state_of(const Engine& engine) { return engine.*kMember; }
};
template struct OpenedEngine<&Engine::state_>;

std::unique_ptr<Session::State>& state_of(Session& session);
template <std::unique_ptr<Session::State> Session::*kMember>
struct OpenedSession {
  friend std::unique_ptr<Session::State>& state_of(Session& session) { return session.*kMember; }
};
template struct OpenedSession<&Session::state_>;

// The parts of an engine. They may be changed while the engine has no sessions.
struct EngineParts {
  const detail::Model& model;
  std::unique_ptr<backend::Backend>& backend;
  std::optional<KvPools>& kv_pools;
  std::unique_ptr<detail::StepExecutor>& steps;
};
[[nodiscard]] EngineParts parts_of(const Engine& engine);
// Makes anew what depends on the backend: the identity, the pools and the executor. Call it when the backend was
// changed.
void adopt_backend(const Engine& engine);

// Returns the session's cache, which only its engine may change.
[[nodiscard]] KvCache& kv_of(Session& session);
// Returns whether the session has memory for logits.
[[nodiscard]] bool has_room_for_logits(const Session::State& session);

}  // namespace tessera::test
