// What a scheduler is made of, fixed when it is made: any thread reads it without a lock.
#pragma once

#include <cstdint>
#include <memory>

#include <tessera/scheduler/scheduler.hpp>
#include <tessera/unstable/scheduler/plan_step.hpp>

#include "engine/states.hpp"

namespace tessera::detail {

struct Setup {
  Setup(Engine of, std::shared_ptr<const Engine::State> internals, SchedulerOptions how);

  const Engine engine;
  const std::shared_ptr<const Engine::State> shared;
  const SchedulerOptions options;
  const PageCost page_cost;  // of sessions of the engine's own KV type

  [[nodiscard]] bool has_kv_file() const noexcept { return !shared->options.kv_file.empty(); }
  // Whether the engine has a budget of KV bytes. Without one nobody ever has to give way.
  [[nodiscard]] bool is_bounded() const noexcept { return shared->options.kv_budget != 0; }
  // Bytes of KV pages that can be had now.
  [[nodiscard]] std::uint64_t free_bytes() const noexcept;
  // Tokens that the session of a request holds.
  [[nodiscard]] std::uint64_t context_of(const Request& request) const noexcept;
  // The KV options of the session that a request is given, nothing automatic.
  [[nodiscard]] KvOptions kv_options_of(const Request& request) const;
  [[nodiscard]] StreamOptions stream_of(const Request& request) const noexcept;
};

// What a session's handle holds.
[[nodiscard]] Session::State& state_of(const Session& session) noexcept;

}  // namespace tessera::detail
