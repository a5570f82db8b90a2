// Adapter::State, the data behind the public handle Adapter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/engine.hpp>

#include "backend/adapter_backend.hpp"

namespace tessera {

struct Adapter::State {
  explicit State(std::shared_ptr<const Engine::State> of) noexcept : engine(std::move(of)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();  // removes the adapter from ranks in other processes, and gives `bytes` back to LoadedAdapters

  std::shared_ptr<const Engine::State> engine;  // first member, so it is destroyed last: `weights` are in the engine's memory
  std::string name, base;
  std::vector<Token> invocation;
  Hash128 content;
  std::uint64_t bytes = 0;  // counted by LoadedAdapters
  std::uint32_t rank = 0;
  std::size_t matrices = 0;
  backend::AdapterWeights weights;
  bool is_on_ranks = false;  // true: ranks in other processes have the adapter too
};

}  // namespace tessera
