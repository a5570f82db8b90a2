// Many requests on one engine. A deterministic object without threads: what a step consists of follows from what was
// submitted, the clock and the policy (plan_step.hpp). A request's tokens do not depend on its neighbours, the policy, the
// chunks of its prompt, or on whether it was preempted: they are what its session would give alone. A request that has dropped
// tokens (a budget of tokens, a stream) could not be computed again to the same bits: without a kv_file it is not preempted after its
// first drop. Before that drop it gives way unless there are the pages that it needs until its end, which are set aside then.
//
//   auto scheduler = Scheduler::create(engine, {.policy = fair_by_tenant()});
//   auto request = scheduler->submit({.prompt = tokens, .tenant = "acme"});
//   while (auto piece = request->next()) std::fputs(piece->piece.text.c_str(), stdout);
//   if (auto status = request->status(); !status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
//
// submit() may be called by any thread. step() is called by whoever drives: the host's own loop, a Driver's thread, or a
// handle's next() where there is neither.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <tessera/engine.hpp>
#include <tessera/kv/kv_event.hpp>
#include <tessera/scheduler/cost_model.hpp>
#include <tessera/scheduler/histogram.hpp>
#include <tessera/scheduler/plan_step.hpp>
#include <tessera/scheduler/policy.hpp>
#include <tessera/scheduler/request.hpp>
#include <tessera/scheduler/tenants.hpp>

namespace tessera {

struct RequestEvent {
  enum class Kind : std::int32_t {
    queued = 0, scheduled = 1, first_token = 2, preempted = 3, resumed = 4, finished = 5, refused = 6
  };
  Kind kind = Kind::queued;
  std::uint64_t request = 0;  // its id; of a refused one 0
  double time = 0.0;          // seconds of the scheduler's clock
};

struct SchedulerOptions {
  PolicyPtr policy = {};                   // none: first_come()
  StepLimits limits = {};                  // `rows` is cut to the engine's step_rows
  std::size_t max_waiting = 1024;          // requests for which there is no place; more are refused (busy)
  // Pieces that are kept for a reader. A request whose reader does not read is not computed any further until it does.
  std::size_t max_unread = 256;
  CostModel costs = {};                    // what is known of steps beforehand; it learns
  TokenPrices prices = {};                 // fair_by_tenant
  std::map<std::string, double> weights = {};  // of tenants; 1 of those that are not named
  // Seconds that never go back. None: the system's steady clock. If it throws, the time is the one that it gave before.
  std::function<double()> clock = {};
  // From whoever drives or submits, outside of locks. It must not call the scheduler.
  std::function<void(const RequestEvent&)> on_event = {};
  // What the engine's prefix index has gained and lost, whoever used it: told after each step by who drives, one event at a
  // time in the order in which they happened, outside of locks. The first is `cleared`. It must not call the scheduler.
  std::function<void(const KvEvent&)> on_kv_event = {};
};

// Since the scheduler was made. Times in seconds.
struct SchedulerFigures {
  Histogram queue, time_to_first_token, inter_token, per_output_token, end_to_end;
  Histogram step, planning, rows;          // of a step: its time, the scheduler's own part of it, its rows
  std::uint64_t submitted = 0, refused_busy = 0, refused_size = 0, refused_late = 0;
  std::uint64_t finished = 0, cancelled = 0, failed = 0, late = 0;
  std::uint64_t steps = 0, prompt_tokens = 0, reused_tokens = 0, tokens = 0, recomputed_tokens = 0;
  std::uint64_t drafted = 0, accepted = 0;  // drafts that were in a step, and those that the samplers drew
  std::uint64_t suspended = 0, recomputed = 0;  // preemptions by kind: pages to the file, or given up
  std::uint64_t out_of_room = 0;           // parts that found no pages although the plan had counted on them
  std::size_t running = 0, waiting = 0;    // now; paused and unread ones are `waiting`
  // Those that have requests, those that have a weight of their own, and others that are not forgotten yet (tenants.hpp). Empty if
  // there was no memory for them.
  std::map<std::string, Tenants::Tenant, std::less<>> tenants;
  CostModel::Costs costs;
  double cost_error = 0.0;                 // CostModel::mean_error()
};

class Scheduler {
 public:
  [[nodiscard]] static Result<Scheduler> create(const Engine& engine, const SchedulerOptions& options = {}) noexcept;
  Scheduler() noexcept;  // an empty handle (docs/headers.md)
  Scheduler(Scheduler&&) noexcept;
  Scheduler& operator=(Scheduler&&) noexcept;
  ~Scheduler();  // requests that have not ended are cancelled

  // Errors: invalid_argument (a prompt, an option, what can never fit, with the numbers), busy (too many wait; the sentence
  // says when to try again), too_late (IfLate::refuse), invalid_state (draining).
  [[nodiscard]] Result<RequestHandle> submit(Request request) noexcept;

  // One step. false: there is nothing to do until something is submitted, read or resumed, or the time of wake_time().
  // An error is one of the whole step (a device's): the requests that were in it have ended with it. Exception: callback_failed, a
  // callback of the host's threw (clock, on_event, on_kv_event, on_ready), in this step or since the last one. The error names
  // the callback; the step is done, and the requests go on.
  Result<bool> step() noexcept;
  // When step() has something to do again although nothing happens; infinity: never.
  [[nodiscard]] double wake_time() const noexcept;

  // A request by its id, from any thread, as RequestHandle::cancel() does; one that has ended or never was is no error.
  // out_of_memory: nothing was noted.
  [[nodiscard]] Status cancel(std::uint64_t request) noexcept;
  // From now on submit() refuses. What has been submitted goes on. Does not wait.
  void drain() noexcept;
  [[nodiscard]] bool idle() const noexcept;  // no request is there
  // Seconds until a request of this many tokens would begin, as far as one can tell.
  [[nodiscard]] double expected_wait() const noexcept;

  // Copies all of them, tenants too: its time grows with these, a step's does not.
  [[nodiscard]] SchedulerFigures figures() const noexcept;
  [[nodiscard]] const Engine& engine() const noexcept;

  struct State;

 private:
  friend class Driver;
  explicit Scheduler(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
  bool owns_ = true;  // its end is the end of the requests
};

// A thread that drives a scheduler.
class Driver {
 public:
  [[nodiscard]] static Result<Driver> start(Scheduler& scheduler) noexcept;
  Driver() noexcept;  // an empty handle (docs/headers.md)
  Driver(Driver&&) noexcept;
  Driver& operator=(Driver&&) noexcept;
  ~Driver();  // stop(); what has not ended stays

  // Waits until everything that was submitted has ended, or nothing goes on by itself any more. Call Scheduler::drain() first
  // where others go on submitting. Errors: busy, all requests that are left are paused or have max_unread pieces that nobody
  // has read: read or resume them, and call again; invalid_state, the driver has been stopped with requests left, or this is a
  // callback of the driver's. Waits without end while requests need pages that sessions of the host keep, and while every step
  // fails.
  [[nodiscard]] Status wait_until_idle() noexcept;
  // Waits for the step that runs, callbacks included. From a callback of the driver's it does not wait: the thread ends behind it.
  void stop() noexcept;

 private:
  struct State;
  explicit Driver(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

}  // namespace tessera
