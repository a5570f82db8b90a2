// Checks that a drafter is not started with an empty Engine handle.
#pragma once

#include <tessera/engine.hpp>

#include "core/empty.hpp"

namespace tessera::detail {

inline Status check_engine(const Engine& engine) noexcept {
  if (engine.spec().vocab_size == 0) return empty_handle("Engine");
  return {};
}

}  // namespace tessera::detail
