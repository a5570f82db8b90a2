// What a session holds, for tests of what is below its public functions.
#pragma once

#include <memory>

#include <tessera/session.hpp>

#include "engine/states.hpp"

namespace tessera::test {

// An instantiation may name private members, and a friend of it hands them out.
std::unique_ptr<Session::State>& state_of(Session& session);
template <std::unique_ptr<Session::State> Session::*kMember>
struct OpenedSession {
  friend std::unique_ptr<Session::State>& state_of(Session& session) { return session.*kMember; }
};
template struct OpenedSession<&Session::state_>;

}  // namespace tessera::test
