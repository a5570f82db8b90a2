// The library's own, for a test's backends.
#pragma once

#include "backend/forwarding_backend.hpp"

namespace tessera::test {

using backend::ForwardingBackend;

}  // namespace tessera::test
