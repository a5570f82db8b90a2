// The state of a scheduler: owns the objects that each do one part of a step. Access:
//
//   any thread       setup (never changes); host, inbox, accounts and turns (each has locks of its own)
//   driving thread   the members behind `step_mutex_`. It is the thread that holds this mutex, in step() or close()
//
// Order of locks: a turn (of `turns`), then step_mutex_, then one of: a request's mutex, the locks of host, inbox and accounts.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "scheduler/step/computation.hpp"
#include "scheduler/turns.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] Scheduler::State : std::enable_shared_from_this<Scheduler::State> {
  State(Engine of, std::shared_ptr<const Engine::State> internals, SchedulerOptions how);

  // --- Any thread.
  const detail::Setup setup;
  detail::HostCalls host{setup.options.clock};
  detail::Inbox inbox;
  detail::Accounts accounts;
  detail::Turns turns;  // lets steps and the work of between_steps() run one at a time

  Result<std::shared_ptr<RequestHandle::State>> submit(Request request);
  [[nodiscard]] SchedulerFigures figures() noexcept;
  Result<bool> step();
  void close() noexcept;
  static Session::State& session_state(const Session& session) noexcept { return *session.state_; }

 private:
  // --- The driving thread.
  Result<bool> step_alone();
  void take_inbox();
  void apply_wishes();
  void note_counts() noexcept;
  [[nodiscard]] detail::Inbox::Outlook outlook() noexcept;

  std::mutex step_mutex_;
  detail::EngineTime engine_time_;
  detail::Learnt learnt_;
  detail::Requests requests_;
  detail::Delivery delivery_;
  detail::Preemption preemption_;
  detail::Drops drops_;
  detail::Prefixes prefixes_;
  detail::Admission admission_;
  detail::Planning planning_;
  detail::Computation computation_;
  std::vector<std::uint64_t> cancelling_;  // ids that a step has taken from the inbox
};

}  // namespace tessera
