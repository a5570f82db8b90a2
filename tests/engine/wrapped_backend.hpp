// Puts a backend of a test's around an engine's own.
#pragma once

#include <memory>
#include <utility>

#include "engine/inside.hpp"
#include "engine/models.hpp"

namespace tessera::test {

// The engine computes with Wrapper(its backend, args...), which lives as long as the engine. It has no sessions yet.
template <class Wrapper, class... Args>
Wrapper& wrap_backend(const Engine& engine, Args&&... args) {
  std::unique_ptr<backend::Backend>& backend = parts_of(engine).backend;
  auto wrapper = std::make_unique<Wrapper>(std::move(backend), std::forward<Args>(args)...);
  Wrapper& made = *wrapper;
  backend = std::move(wrapper);
  adopt_backend(engine);
  return made;
}

}  // namespace tessera::test
