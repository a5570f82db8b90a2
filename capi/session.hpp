// The session's handle. All objects that use the session share its state, so handles may be freed in any order.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include <tessera/session.hpp>

#include "engine.hpp"

namespace tessera::c {

struct SessionState {
  SessionState(EngineStatePtr of, Session with) noexcept : engine(std::move(of)), session(std::move(with)) {}
  EngineStatePtr engine;
  Session session;
  // Logits of the last append, as a view into `session`. Set until another call changes the session.
  Logits rows = {};
  bool has_rows = false;
  std::size_t generations = 0;                    // number of generation handles that refer to `session`
  std::atomic<const void*> generation = nullptr;  // the generation that has not ended; nullptr: none
  bool is_given = false;                          // true: a scheduler has the tokens, and `session` is empty

  // Returns the session for a call that reads it. Error: invalid_state, the session was given to a scheduler.
  [[nodiscard]] const Session& read() const {
    if (!is_given) return session;
    fail(ErrorCode::invalid_state,
         "its tokens were given to a scheduler: tessera_request_take_session() returns a session that has them, if the "
         "request was submitted with \"keep_session\": true",
         "session");
  }
  // Returns the session for a call that changes it. Errors: those of read(); invalid_state, a generation has not ended.
  [[nodiscard]] Session& change() {
    static_cast<void>(read());
    if (generation != nullptr) {
      fail(ErrorCode::invalid_state, "a generation of this session has not ended: read it to its end or free it",
           "session");
    }
    forget_rows();
    return session;
  }
  void forget_rows() noexcept {
    rows = {};
    has_rows = false;
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
