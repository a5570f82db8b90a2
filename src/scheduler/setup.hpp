// The engine and the options of a scheduler. They never change, so any thread may read them without a lock.
#pragma once

#include <cstdint>
#include <memory>

#include <tessera/scheduler/scheduler.hpp>
#include <tessera/unstable/scheduler/plan_step.hpp>

#include "engine/views.hpp"

namespace tessera::detail {

struct Setup {
  Setup(Engine of, std::shared_ptr<const Engine::State> internals, SchedulerOptions how);

  const Engine engine;
  const std::shared_ptr<const Engine::State> shared;  // the engine's state
  const EngineView inside;                            // a view of `shared`
  const SchedulerOptions options;
  const PageCost page_cost;  // bytes of pages for sessions with the engine's own KV options

  [[nodiscard]] bool has_kv_file() const noexcept { return !inside.options.kv_file.empty(); }
  // Returns whether the engine has a budget of KV bytes. Without a budget, no request ever has to give up its pages.
  [[nodiscard]] bool is_bounded() const noexcept { return inside.options.kv_budget != 0; }
  // Returns the bytes that are left for KV pages: free bytes, and bytes that can be evicted.
  [[nodiscard]] std::uint64_t free_bytes() const noexcept;
  // Returns the number of tokens that the request's session can hold.
  [[nodiscard]] std::uint64_t context_of(const Request& request) const noexcept;
  // Returns the KV options of the request's present or future session, without automatic values.
  [[nodiscard]] KvOptions kv_options_of(const Request& request) const;
  [[nodiscard]] StreamOptions stream_of(const Request& request) const noexcept;
};

// Returns the state behind a Session handle.
[[nodiscard]] Session::State& state_of(const Session& session) noexcept;

}  // namespace tessera::detail
