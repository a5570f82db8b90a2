// One step of the scheduler: empties the inbox, plans, computes, and delivers results.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::Active;
using detail::ActivePtr;
using detail::guard;
using detail::HostCalls;
using detail::make_error;
using Lock = std::unique_lock<std::mutex>;

namespace {

constexpr double kNoWake = std::numeric_limits<double>::infinity();
constexpr double kRetry = 0.01;  // seconds until the next step, if requests wait and none got rows, or if a running request lacks pages (is_stuck)

}  // namespace

Result<bool> Scheduler::State::step() {
  detail::Delivery::Told told;
  const Result<bool> more = turns.take("Scheduler::step", [&]() -> Result<bool> {
    const Lock driving(step_mutex_);
    const detail::FpState fp_state;
    Result<bool> stepped = guard([&]() -> Result<bool> { return step_alone(); });
    told = delivery_.take();
    if (!stepped) {
      inbox.look_again();  // the next step looks at all wishes again: this step may have failed before it applied all of them
      note_counts();
    }
    return stepped;
  });
  delivery_.hand_out(told);  // calls the host's callbacks, so no lock is held here
  if (const auto error = host.take_error(); error && more) return *error;
  return more;
}

Result<bool> Scheduler::State::step_alone() {
  const double begin = host.now(), begin_steady = HostCalls::steady_seconds();
  take_inbox();
  apply_wishes();
  admission_.branch();
  planning_.make(begin);
  const bool nothing = planning_.plan().shares.empty() && planning_.plan().preempted.empty();
  bool computed = false;
  engine_time_.clear();
  preemption_.begin_step();
  if (!nothing) {
    computation_.make_room();
    computed = computation_.compute(begin);
  }
  apply_wishes();
  note_counts();
  const bool is_stuck = preemption_.is_stuck();
  const auto running = requests_.running();
  detail::Waiting& waiting = requests_.waiting();
  detail::Inbox::Outlook expected = outlook();
  if (is_stuck || (nothing && !waiting.empty())) {
    const StepLimits& limits = setup.options.limits;
    expected.wake_time = limits.batching == Batching::dynamic && running.empty() && !is_stuck
                             ? std::ranges::min(waiting.plans(), {}, &PlannedRequest::submitted).submitted + limits.max_wait
                             : begin + kRetry;
  }
  const bool have_arrived = inbox.set_outlook(expected, learnt_.costs);
  accounts.figures.with([&](SchedulerFigures& figures) {
    figures.costs = learnt_.costs.costs();
    figures.cost_error = learnt_.costs.mean_error();
    figures.planning.add(HostCalls::steady_seconds() - begin_steady - engine_time_.seconds());
  });
  return computed || have_arrived || (!nothing && !is_stuck && !(running.empty() && waiting.empty()));
}

// Stores the numbers of requests in the inbox, for Scheduler::idle(). Also called after a step that failed.
void Scheduler::State::note_counts() noexcept {
  inbox.set_counts(requests_.waiting().size() + requests_.held_back().size(), requests_.running().size());
}

// Moves requests from the inbox to the waiting requests. A request leaves the inbox only after memory for it is reserved. So if memory is
// short, the step fails, but no request is lost.
void Scheduler::State::take_inbox() {
  requests_.close_gaps();  // a step that failed may have left gaps
  for (std::size_t arrived = inbox.begin_step(cancelling_); arrived > 0; --arrived) {
    Active& next = *inbox.first();
    requests_.waiting().make_room(1);
    // If memory is short, the request reuses no pages.
    (void)guard([&]() -> Status { return next.probe = prefixes_.probe_of(next), Status(); });
    accounts.tenants.with([&](Tenants& tenants) {
      next.tenant = &tenants.named(next.wanted.tenant);
      tenants.submitted(*next.tenant);
    });
    if (wish_of(next) != detail::Wish::go_on) inbox.look_again();
    requests_.wait(inbox.take());
    prefixes_.look_up(requests_.waiting().size() - 1);
  }
  if (cancelling_.empty()) return;
  requests_.each([&](const Active& active) {
    if (std::ranges::find(cancelling_, active.planned.id) == cancelling_.end()) return;
    const Lock lock(active.request->mutex);
    active.request->is_cancelled = true;
  });
  cancelling_.clear();
  inbox.look_again();
}

void Scheduler::State::apply_wishes() {
  requests_.apply_wishes(inbox, [this](Active& active) {
    delivery_.end(active, make_error(ErrorCode::cancelled, "the request was cancelled"));
  });
}

// Predicts how many seconds a new request would wait before its first step, and the seconds between two tokens of a request.
detail::Inbox::Outlook Scheduler::State::outlook() noexcept {
  const CostModel& costs = learnt_.costs;
  detail::Inbox::Outlook expected{.wake_time = kNoWake};
  const auto plans = planning_.running();
  std::uint64_t rows = requests_.waiting().rows(), drawing = 0;
  for (const PlannedRequest& one : plans) {
    rows += one.needed() > 1 ? one.needed() : 0;
    drawing += one.needed() == 1 ? 1 : 0;
  }
  const auto decoding = static_cast<std::uint32_t>(drawing);
  expected.token = costs.predict({.rows = decoding + 1, .outputs = decoding + 1, .keys = 0});
  const std::uint32_t chunk = setup.options.limits.rows;
  const double row = costs.predict({.rows = chunk, .outputs = 1, .keys = 0}) / chunk;
  expected.wait = static_cast<double>(rows) * row;
  if (requests_.running().size() < setup.options.limits.max_running || plans.empty()) return expected;
  // max_running requests are running, so one of them must end before another can begin.
  std::uint64_t least = UINT64_MAX;
  for (const PlannedRequest& one : plans) least = std::min(least, one.remaining());
  expected.wait += static_cast<double>(least) * expected.token *
                   (1.0 + static_cast<double>(requests_.waiting().size()) / static_cast<double>(plans.size()));
  return expected;
}

void Scheduler::State::close() noexcept {
  inbox.close();  // from now on no request is accepted
  detail::Delivery::Told told;
  {
    const Lock driving(step_mutex_);
    const auto stop = [this](Active& active) {
      delivery_.end(active, make_error(ErrorCode::cancelled, "the scheduler was destroyed before the request had ended"));
    };
    requests_.each(stop);
    requests_.clear();
    while (inbox.first() != nullptr) stop(*inbox.take());
    told = delivery_.take();
    note_counts();
  }
  inbox.wake();  // drivers that wait must see that the scheduler is closed
  delivery_.tell_readers(told);
}

}  // namespace tessera
