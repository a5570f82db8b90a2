// Runs many requests on one engine, in common steps. A Scheduler has no threads and is deterministic: what a step computes depends only on
// the submitted requests, the clock and the policy. A request gets the same tokens as it would get alone. They do not depend on other
// requests, on the policy, on the chunks in which the prompt is computed, or on preemption. (A *preempted* request gives its KV pages up
// for others, and goes on later.)
//
// Requests that drop tokens (because of a token budget, or as a stream) are preempted less: after the first drop, their keys and values
// could not be computed again with the same bits. So without a kv_file such a request is never preempted after its first drop. Before that
// drop, the pages that it needs until its end are set aside; if there are not enough free pages, the request is preempted before the drop
// instead.
//
//   auto scheduler = Scheduler::create(engine, {.policy = fair_by_tenant()});
//   auto request = scheduler->submit({.prompt = tokens, .tenant = "acme"});
//   while (auto piece = request->next()) std::fputs(piece->piece.text.c_str(), stdout);
//   if (auto status = request->status(); !status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
//
// Threads: any thread may call submit(). Somebody must call step() again and again: the host's own loop, or the thread of a Driver. If
// there is neither, RequestHandle::next() does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <tessera/engine.hpp>
#include <tessera/extend/kv/kv_event.hpp>
#include <tessera/extend/scheduler/cost_model.hpp>
#include <tessera/extend/scheduler/histogram.hpp>
#include <tessera/extend/scheduler/tenant_figures.hpp>
#include <tessera/scheduler/policy.hpp>
#include <tessera/scheduler/request.hpp>
#include <tessera/scheduler/step_limits.hpp>

namespace tessera {

struct RequestEvent {
  enum class Kind : std::int32_t {
    queued = 0, scheduled = 1, first_token = 2, preempted = 3, resumed = 4, finished = 5, refused = 6
  };
  Kind kind = Kind::queued;
  std::uint64_t request = 0;  // the request's id; 0 if it was refused
  double time = 0.0;          // seconds of the scheduler's clock
};

struct SchedulerOptions {
  PolicyPtr policy = {};                   // none: first_come()
  StepLimits limits = {};                  // `rows` is cut to the engine's step_rows
  std::size_t max_waiting = 1024;          // requests that may wait; more are refused (busy)
  // Largest number of unread pieces of a request. A request that has this many is not computed further until its reader reads.
  std::size_t max_unread = 256;
  CostModel costs = {};                    // a first guess of how long steps take; the scheduler corrects it by measured times
  TokenPrices prices = {};                 // prices of tokens, from which TenantFigures::service is computed (fair_by_tenant())
  std::map<std::string, double> weights = {};  // weights of tenants, by their names; all other tenants have weight 1
  // The scheduler's clock: returns seconds, which must never decrease. None: the system's steady clock. If it throws, its last time is used
  // again.
  std::function<double()> clock = {};
  // Receives the events of requests. Called outside of locks, on the thread that drives the scheduler or submits. It must not call the
  // scheduler.
  std::function<void(const RequestEvent&)> on_event = {};
  // Receives each change of the engine's prefix index, also changes that come from outside of this scheduler. Called after a step on the
  // thread that drives, outside of locks, for one event at a time and in the order of the changes. The first event is `cleared`. It must
  // not call the scheduler.
  std::function<void(const KvEvent&)> on_kv_event = {};
};

// Figures since the scheduler was made. Times are in seconds.
struct SchedulerFigures {
  Histogram queue, time_to_first_token, inter_token, per_output_token, end_to_end;
  Histogram step, planning, rows;          // seconds of a step; seconds of a step that the scheduler itself takes; rows of a step
  std::uint64_t submitted = 0, refused_busy = 0, refused_size = 0, refused_late = 0;
  std::uint64_t finished = 0, cancelled = 0, failed = 0, late = 0;
  std::uint64_t steps = 0, prompt_tokens = 0, reused_tokens = 0, tokens = 0, recomputed_tokens = 0;
  std::uint64_t drafted = 0, accepted = 0;  // drafts that were in a step, and drafts that the samplers drew
  std::uint64_t suspended = 0, recomputed = 0;  // preemptions that wrote the pages to the kv_file; preemptions that freed the pages
  std::uint64_t out_of_room = 0;           // times that a request of a step found no pages, although the plan had counted on them
  std::size_t running = 0, waiting = 0;    // requests now; paused and unread requests count as waiting
  // Figures of tenants, by name: of all tenants that have requests or a weight of their own. A tenant without both is forgotten at some time
  // after its last request has ended; until then the list has its figures too. Empty if there was no memory for the list.
  std::map<std::string, TenantFigures, std::less<>> tenants;
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

  // Submits a request, and does not wait. Any thread may call it. Errors: invalid_argument, the prompt, an option, or a request that can
  // never fit (the message has the numbers); busy, too many requests wait (the message says when to try again); too_late (IfLate::refuse);
  // invalid_state, drain() was called.
  [[nodiscard]] Result<RequestHandle> submit(Request request) noexcept;

  // Computes one step. Returns false if there is nothing to do until a request is submitted, read or resumed, or until wake_time(). Errors:
  // the error of the whole step (of a device, for example); all requests of the step have then ended with it. Exception: callback_failed, a
  // callback of the host (clock, on_event, on_kv_event, on_ready) threw, in this step or since the last step. The error names the callback;
  // the step is done, and the requests go on.
  Result<bool> step() noexcept;
  // Returns the time, on the scheduler's clock, at which step() will have something to do even if nobody calls anything until then;
  // infinity: never.
  [[nodiscard]] double wake_time() const noexcept;

  // Calls `work` on the caller's thread while no step runs: waits for the end of the running step, and lets the next step wait for `work`.
  // Use it for what a host computes beside the scheduler with Engine::forward(): the scheduler learns how long steps take, and would
  // otherwise count this time as time of its steps. Any thread may call it; callers and steps run in the order in which they come. Requests
  // wait as long as `work` takes, so it should take no longer than a step (StepLimits::seconds).
  // Precondition: `work` waits for nothing that needs a step, so it must not call RequestHandle::next(), stop a driver or wait for a
  // driver. Errors: callback_failed, `work` is empty or threw; invalid_state, called within a step or within another `work` (step() within
  // `work` returns the same error).
  [[nodiscard]] Status between_steps(const std::function<void()>& work) noexcept;

  // Cancels the request with this id, as RequestHandle::cancel() does. Any thread may call it. It is no error if the request has ended
  // already, or if no request ever had this id. Errors: out_of_memory, the request goes on.
  [[nodiscard]] Status cancel(std::uint64_t request) noexcept;
  // Stops accepting requests: submit() returns an error from now on. Requests that were submitted before go on. Does not wait for them.
  void drain() noexcept;
  [[nodiscard]] bool idle() const noexcept;  // there is no request
  // Returns an estimate of how many seconds a request that is submitted now will wait before its first step.
  [[nodiscard]] double expected_wait() const noexcept;

  // Returns a copy of the figures, tenants included. The time of this call grows with the number of tenants; the time of a step does not.
  [[nodiscard]] SchedulerFigures figures() const noexcept;
  [[nodiscard]] const Engine& engine() const noexcept;

  struct State;

 private:
  friend class Driver;
  explicit Scheduler(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
  bool owns_ = true;  // the destructor ends the requests
};

// A thread that calls a scheduler's step() whenever there is something to do.
//
//   auto driver = Driver::start(scheduler);
//   auto request = scheduler.submit({.prompt = tokens});  // from any thread
//   while (auto piece = request->next()) std::fputs(piece->piece.text.c_str(), stdout);
//   driver->stop();
class Driver {
 public:
  [[nodiscard]] static Result<Driver> start(Scheduler& scheduler) noexcept;
  Driver() noexcept;  // an empty handle (docs/headers.md)
  Driver(Driver&&) noexcept;
  Driver& operator=(Driver&&) noexcept;
  ~Driver();  // stop(); requests that have not ended stay in the scheduler

  // Waits until all submitted requests have ended, or until no request can go on by itself. If other threads go on submitting, call
  // Scheduler::drain() first. Errors: busy, all requests that are left are paused or have max_unread unread pieces (read or resume them,
  // and call again); invalid_state, the driver was stopped with requests left, or the caller is a callback of the driver. May wait without
  // end: while requests need pages that sessions of the host keep, and while every step fails.
  [[nodiscard]] Status wait_until_idle() noexcept;
  // Ends the thread after the running step, and waits until it has ended. Exception: if a callback on the driver's thread calls stop(), the
  // call does not wait, and the thread ends after the callback.
  void stop() noexcept;

 private:
  struct State;
  explicit Driver(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

}  // namespace tessera
