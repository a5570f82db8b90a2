// Member functions of Scheduler, which any thread may call.
#include <tessera/scheduler/scheduler.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "scheduler/requests/new_request.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;

Scheduler::State::State(Engine of, std::shared_ptr<const Engine::State> internals, SchedulerOptions how)
    : setup(std::move(of), std::move(internals), std::move(how)),
      inbox({.max_running = setup.options.limits.max_running, .max_waiting = setup.options.max_waiting}, setup.options.costs),
      accounts(setup.options.prices),
      learnt_(setup.options.costs),
      delivery_(setup, host, inbox, accounts, engine_time_),
      preemption_(setup, host, accounts, delivery_, requests_, learnt_),
      drops_(setup, requests_, preemption_),
      prefixes_(setup, requests_),
      admission_(setup, accounts, inbox, delivery_, requests_, learnt_),
      planning_(setup, requests_, prefixes_, drops_, preemption_, learnt_),
      computation_(setup, host, accounts, delivery_, requests_, planning_, admission_, preemption_, drops_, learnt_, engine_time_) {
  accounts.tenants.with([&](Tenants& tenants) {
    for (const auto& [name, weight] : setup.options.weights) tenants.set_weight(name, weight);
  });
}

Session::State& detail::state_of(const Session& session) noexcept { return Scheduler::State::session_state(session); }

Result<std::shared_ptr<RequestHandle::State>> Scheduler::State::submit(Request request) {
  TESSERA_TRY_STATUS(detail::check(setup, request));
  TESSERA_TRY(detail::ActivePtr active, detail::make_active(setup, std::move(request)));
  if (const Status fits = detail::check_size(setup, active->planned); !fits) {
    accounts.figures.with([](SchedulerFigures& figures) { ++figures.refused_size; });
    return fits.error();
  }
  const std::shared_ptr<RequestHandle::State> handle = active->request;
  handle->scheduler = shared_from_this();
  const Request& wanted = active->wanted;
  if (wanted.generate.stop.stop_possible()) handle->on_stop.emplace(wanted.generate.stop, RequestHandle::State::WakeScheduler{this});
  const double time = handle->figures.submitted = active->planned.submitted = host.now();
  active->planned.deadline = time + wanted.deadline;
  const Status put = inbox.put(std::move(active));
  if (put) return handle;
  accounts.figures.with([&](SchedulerFigures& figures) {
    figures.refused_busy += put.error().code() == ErrorCode::busy ? 1 : 0;
    figures.refused_late += put.error().code() == ErrorCode::too_late ? 1 : 0;
  });
  return put.error();
}

SchedulerFigures Scheduler::State::figures() noexcept {
  SchedulerFigures all = accounts.figures.with([](const SchedulerFigures& figures) { return figures; });
  const detail::Inbox::Counts counts = inbox.counts();
  all.submitted = counts.submitted;
  all.running = counts.running;
  all.waiting = counts.waiting;
  (void)guard([&]() -> Status {
    all.tenants = accounts.tenants.with([](const Tenants& tenants) { return tenants.all(); });
    return {};
  });
  return all;
}

Result<Scheduler> Scheduler::create(const Engine& engine, const SchedulerOptions& options) noexcept {
  return guard([&]() -> Result<Scheduler> {
    if (engine.state_ == nullptr) return detail::empty_handle("Engine");
    SchedulerOptions how = options;
    if (how.policy == nullptr) how.policy = first_come();
    how.limits.rows = std::min(how.limits.rows, detail::view_of(*engine.state_).options.step_rows);
    if (how.limits.rows == 0 || how.limits.max_running == 0 || !(how.limits.seconds > 0.0) ||
        !(how.limits.headroom >= 0.0 && how.limits.headroom <= 1.0) || !(how.limits.first_share > 0.0 && how.limits.first_share <= 1.0)) {
      return make_error(ErrorCode::invalid_argument,
                        "limits: rows {}, seconds {} and max_running {} must be above 0; headroom {} must be from 0 to 1; first_share {} "
                        "must be above 0 and at most 1",
                        how.limits.rows, how.limits.seconds, how.limits.max_running, how.limits.headroom, how.limits.first_share);
    }
    for (const auto& [name, weight] : how.weights) {
      if (!(weight > 0.0) || !std::isfinite(weight)) {
        return make_error(ErrorCode::invalid_argument, "tenant \"{}\" has a weight of {}; it must be positive", name, weight);
      }
    }
    return Scheduler(std::make_shared<State>(engine, engine.state_, std::move(how)));
  });
}

Scheduler::Scheduler() noexcept = default;
Scheduler::Scheduler(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Scheduler::Scheduler(Scheduler&& other) noexcept : state_(std::move(other.state_)), owns_(std::exchange(other.owns_, false)) {}
Scheduler& Scheduler::operator=(Scheduler&& other) noexcept {
  if (this != &other) {
    if (owns_ && state_ != nullptr) state_->close();
    state_ = std::move(other.state_);
    owns_ = std::exchange(other.owns_, false);
  }
  return *this;
}
Scheduler::~Scheduler() {
  if (owns_ && state_ != nullptr) state_->close();
}

Result<RequestHandle> Scheduler::submit(Request request) noexcept {
  return guard([&]() -> Result<RequestHandle> {
    if (state_ == nullptr) return detail::empty_handle("Scheduler");
    const std::shared_ptr<State> state = state_;  // keeps the state alive if a callback destroys the scheduler
    auto handle = state->submit(std::move(request));
    if (const auto& on_event = state->setup.options.on_event) {
      const RequestEvent event{.kind = handle ? RequestEvent::Kind::queued : RequestEvent::Kind::refused,
                               .request = handle ? (*handle)->id : 0,
                               .time = state->host.now()};
      state->host.call("SchedulerOptions::on_event", [&] { on_event(event); });
    }
    if (!handle) return std::move(handle).error();
    return RequestHandle(*std::move(handle));
  });
}

Result<bool> Scheduler::step() noexcept {
  return guard([&]() -> Result<bool> {
    if (state_ == nullptr) return detail::empty_handle("Scheduler");
    const std::shared_ptr<State> state = state_;  // keeps the state alive if a callback destroys the scheduler
    return state->step();
  });
}

double Scheduler::wake_time() const noexcept {
  return state_ == nullptr ? std::numeric_limits<double>::infinity() : state_->inbox.outlook().wake_time;
}

Status Scheduler::between_steps(const std::function<void()>& work) noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("Scheduler");
    const std::shared_ptr<State> state = state_;  // keeps the state alive if `work` destroys the scheduler
    return state->turns.take("Scheduler::between_steps", [&]() -> Status {
      detail::call_host("Scheduler::between_steps: work", [&] { work(); });
      return {};
    });
  });
}

Status Scheduler::cancel(std::uint64_t request) noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("Scheduler");
    return state_->inbox.cancel(request), Status();
  });
}

void Scheduler::drain() noexcept {
  if (state_ != nullptr) state_->inbox.drain();
}

bool Scheduler::idle() const noexcept { return state_ == nullptr || state_->inbox.idle(); }
double Scheduler::expected_wait() const noexcept { return state_ == nullptr ? 0.0 : state_->inbox.outlook().wait; }
SchedulerFigures Scheduler::figures() const noexcept { return state_ == nullptr ? SchedulerFigures{} : state_->figures(); }
const Engine& Scheduler::engine() const noexcept { return state_ == nullptr ? detail::empty_value<Engine>() : state_->setup.engine; }

}  // namespace tessera
