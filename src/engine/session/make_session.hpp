// Makes sessions, for applications and for the engine's own work.
#pragma once

#include <memory>

#include <tessera/engine.hpp>

#include "engine/adapters/sequence_adapters.hpp"

namespace tessera::detail {

// Makes an empty session. Errors: those of Engine::session().
[[nodiscard]] Result<std::unique_ptr<Session::State>> make_session(const Engine& engine, const std::shared_ptr<const Engine::State>& state,
                                                                   const SessionOptions& options);

// Returns the adapters of a session. Errors: those of SequenceAdapters::make(); invalid_argument, an adapter belongs to another engine.
[[nodiscard]] Result<SequenceAdapters> make_adapters(std::span<const AdapterUse> uses, const Engine::State& engine);

}  // namespace tessera::detail
