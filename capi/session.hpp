// The session's handle. Its state is shared with what uses the session, so that handles may be freed in any order.
#pragma once

#include <memory>
#include <utility>

#include <tessera/session.hpp>

#include "engine.hpp"

namespace tessera::c {

struct SessionState {
  SessionState(EngineStatePtr of, Session with) noexcept : engine(std::move(of)), session(std::move(with)) {}
  EngineStatePtr engine;
  Session session;
  // Logits of the last append, a view into `session`, if no other call has changed the session since.
  Logits rows = {};
  bool has_rows = false;
  std::size_t generations = 0;  // handles of generations, which refer to `session`

  // Returns the session for a call that changes it.
  [[nodiscard]] Session& change() noexcept {
    rows = {};
    has_rows = false;
    return session;
  }
};
using SessionStatePtr = std::shared_ptr<SessionState>;

}  // namespace tessera::c

struct tessera_session : tessera::c::Tagged<tessera::c::Kind::session> {
  explicit tessera_session(tessera::c::SessionStatePtr of) noexcept : state(std::move(of)) {}
  tessera::c::SessionStatePtr state;
};

namespace tessera::c {

[[nodiscard]] inline tessera_session* new_session(const EngineStatePtr& engine, Session session) {
  return new tessera_session(std::make_shared<SessionState>(engine, std::move(session)));
}

}  // namespace tessera::c
