// Makes sessions: for applications, and for the engine's own work.
#pragma once

#include <memory>

#include <tessera/engine.hpp>

namespace tessera::detail {

// Makes an empty session. Errors: those of Engine::session().
[[nodiscard]] Result<std::unique_ptr<Session::State>> make_session(const Engine& engine, const std::shared_ptr<const Engine::State>& state,
                                                                   const SessionOptions& options);

}  // namespace tessera::detail
