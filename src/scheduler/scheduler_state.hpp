// The state of a scheduler. It consists of objects that each do one job, such as preemption, admission or planning. Which thread may use
// which object:
//
//   any thread       `setup`, which never changes; `host`, `inbox`, `accounts` and `turns`, which have locks of their own
//   driving thread   the members after `step_mutex_`. The driving thread is the thread that holds this mutex, in step() or close()
//
// Order of locks: a turn (of `turns`); step_mutex_; then only one of these: a request's mutex, or the lock of host, inbox or accounts.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "scheduler/step/computation.hpp"
#include "scheduler/turns.hpp"

namespace tessera {

struct [[gnu::visibility("hidden")]] Scheduler::State : std::enable_shared_from_this<Scheduler::State> {
  State(Engine of, std::shared_ptr<const Engine::State> internals, SchedulerOptions how);

  // --- For any thread.
  const detail::Setup setup;
  detail::HostCalls host{setup.options.clock};
  detail::Inbox inbox;
  detail::Accounts accounts;
  detail::Turns turns;  // runs steps and the work of between_steps() one at a time

  Result<std::shared_ptr<RequestHandle::State>> submit(Request request);
  [[nodiscard]] SchedulerFigures figures() noexcept;
  Result<bool> step();
  void close() noexcept;
  static Session::State& session_state(const Session& session) noexcept { return *session.state_; }

 private:
  // --- For the driving thread.
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
  std::vector<std::uint64_t> cancelling_;  // ids of cancelled requests, which the step has taken from the inbox
};

}  // namespace tessera
