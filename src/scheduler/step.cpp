// One step: who is in it. What it computes is in compute.cpp, who gets what in delivery.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::Active;
using detail::ActivePtr;
using detail::guard;
using detail::make_error;
using Kind = RequestEvent::Kind;
using Lock = std::unique_lock<std::mutex>;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRetry = 0.01;  // seconds until pages are looked for again that somebody else has

template <class Wanted>
std::vector<ActivePtr> take_if(std::vector<ActivePtr>& list, Wanted&& wanted) {
  std::vector<ActivePtr> taken;
  taken.reserve(list.size());  // nobody is lost on the way
  std::size_t kept = 0;
  for (ActivePtr& active : list) {
    if (wanted(*active)) taken.push_back(std::move(active));
    else list[kept++] = std::move(active);
  }
  list.resize(kept);
  return taken;
}

enum class Wish { go_on, hold_back, stop };

Wish wish(const Active& active) {
  const Lock lock(active.request->mutex);
  const RequestHandle::State& request = *active.request;
  if (request.is_cancelled || request.has_failed || active.wanted.generate.stop.stop_requested()) return Wish::stop;
  return active.request->holds_back() ? Wish::hold_back : Wish::go_on;
}

}  // namespace

Result<bool> Scheduler::State::step() {
  std::vector<RequestEvent> told;
  std::vector<std::pair<std::shared_ptr<RequestHandle::State>, RequestPiece>> given;
  Result<bool> more = false;
  {
    const detail::Turn turn(turns, {});
    const Lock driving(step_mutex);
    const detail::FpState fp_state;
    more = guard([&]() -> Result<bool> { return step_alone(); });
    told = std::exchange(events, {});
    given = std::exchange(pieces, {});
    if (!more) {
      look_again();  // what it had seen of wishes it may not have heeded
      note_counts();
    }
  }
  // Callbacks run without a lock.
  for (auto& [request, piece] : given) {
    const Status called = guard([to = request.get(), what = &piece]() -> Status {
      return detail::call_host("Request::on_piece", [&] { to->on_piece(*what); }), Status();
    });
    if (called) continue;
    {
      const Lock lock(request->mutex);
      request->set_error(called.error());
      request->is_cancelled = true;
    }
    look_again();
  }
  tell_readers();
  if (options.on_event) {
    for (const RequestEvent& event : told) call("SchedulerOptions::on_event", [&] { options.on_event(event); });
  }
  if (kv_watch != nullptr) tell_kv_events();
  const Lock lock(callback_mutex);
  if (const auto error = std::exchange(failed_callback, std::nullopt); error && more) return *error;
  return more;
}

void Scheduler::State::tell_readers() noexcept {
  for (;;) {
    std::shared_ptr<RequestHandle::State> request;
    {
      const Lock driving(step_mutex);
      if (to_tell == nullptr) return;
      request = std::exchange(to_tell, nullptr);
      to_tell = std::move(request->told_after);
      request->is_to_be_told = false;
    }
    call("Request::on_ready", [&] { request->on_ready(); });
  }
}

// In order, though several threads may drive: one at a time hands them out, and takes those of the others along.
void Scheduler::State::tell_kv_events() noexcept {
  bool more = true;
  while (more && !is_telling.exchange(true)) {
    (void)guard([&]() -> Status {  // without memory the next step tells all
      for (const KvEvent& event : kv_watch->take()) call("SchedulerOptions::on_kv_event", [&] { options.on_kv_event(event); });
      return {};
    });
    is_telling.store(false);
    more = kv_watch->has_events();  // from when another had found this one at it
  }
}

Result<bool> Scheduler::State::step_alone() {
  const double begin = now(), begin_steady = steady_seconds();
  take_inbox();
  sort_out();
  make_plan(begin);
  const bool nothing = plan.parts.empty() && plan.preempted.empty();
  bool computed = false;
  engine_seconds = 0.0;
  is_stuck = false;
  if (!nothing) {
    make_room_for_step();
    computed = compute(begin);
  }
  sort_out();
  note_counts();
  const Lock lock(mutex);
  figures.costs = costs.costs();
  figures.cost_error = costs.mean_error();
  costs_guess = costs;
  estimate_wait();
  wake_time = kNever;
  if (is_stuck || (nothing && !waiting.empty())) {
    wake_time = options.limits.batching == Batching::dynamic && running.empty() && !is_stuck
                    ? std::ranges::min(waiting.plans(), {}, &PlannedRequest::submitted).submitted + options.limits.max_wait
                    : begin + kRetry;
  }
  figures.planning.add(steady_seconds() - begin_steady - engine_seconds);
  return computed || !inbox.empty() || (!nothing && !is_stuck && !(running.empty() && waiting.empty()));
}

// Whoever asks for idle() is to know of every request, also after a step that failed on its way.
void Scheduler::State::note_counts() noexcept {
  const Lock lock(mutex);
  waiting_now = waiting.size() + held_back.size();
  running_now = running.size();
}

// Each leaves the inbox when its place is ready: without memory for one the step fails, and nobody is lost.
void Scheduler::State::take_inbox() {
  waiting.close_gaps();  // of a step that failed
  std::erase(running, nullptr);
  std::erase(held_back, nullptr);
  std::size_t arrived = 0;
  {
    const Lock lock(mutex);
    has_news = false;  // what comes from here on is for another step
    arrived = inbox.size();
    if (cancelling.empty()) cancelling.swap(cancelled);
  }
  for (; arrived > 0; --arrived) {
    Active* next = nullptr;
    {
      const Lock lock(mutex);
      next = inbox.front().get();  // it stays the first: only steps take any away
    }
    waiting.make_room(1);
    (void)guard([&]() -> Status { return next->probe = probe_of(*next), Status(); });  // else it is planned without
    {
      const Lock lock(tenants_mutex);
      next->tenant = &tenants.named(next->wanted.tenant);
      tenants.submitted(*next->tenant);
    }
    if (wish(*next) != Wish::go_on) look_again();
    {
      const Lock lock(mutex);
      waiting.add(std::move(inbox.front()));
      inbox.pop_front();
    }
    look_up(waiting.size() - 1);
  }
  if (cancelling.empty()) return;
  for (const std::span<const ActivePtr> list : {std::span<const ActivePtr>(running), waiting.requests(), std::span<const ActivePtr>(held_back)}) {
    for (const ActivePtr& active : list) {
      if (std::ranges::find(cancelling, active->planned.id) == cancelling.end()) continue;
      const Lock lock(active->request->mutex);
      active->request->is_cancelled = true;
    }
  }
  cancelling.clear();
  look_again();
}

// Ends what is cancelled, sets aside what is paused or not read, and takes back what goes on. Where no wish has changed, which
// is so in most steps, it looks at nobody.
void Scheduler::State::sort_out() {
  // What ends with an error makes its other samples wish for their end: twice.
  for (int i = 0; i < 2 && wishes_seen != wishes.load(); ++i) {
    // Room for all of them first: nobody is lost on the way from one list to another.
    waiting.make_room(held_back.size());
    const std::size_t all = running.size() + held_back.size() + waiting.size();
    running.reserve(all);
    held_back.reserve(all);
    wishes_seen = wishes.load();  // before anybody is looked at: what comes later is seen the next time
    const auto stop = [this](Active& active) { end(active, make_error(ErrorCode::cancelled, "the request was cancelled")); };
    for (ActivePtr& active : take_if(held_back, [](const Active& one) { return wish(one) != Wish::hold_back; })) {
      if (wish(*active) == Wish::stop) stop(*active);
      // Those that kept their pages go on at once.
      else if (active->session && !active->was_preempted) insert_by_order(running, std::move(active));
      else waiting.add(std::move(active));
    }
    const auto leaves = [](const Active& one) { return wish(one) != Wish::go_on; };
    const auto let_go = [&](std::vector<ActivePtr> left) {
      for (ActivePtr& active : left) {
        if (wish(*active) == Wish::stop) stop(*active);
        else insert_by_order(held_back, std::move(active));
      }
    };
    let_go(take_if(running, leaves));
    let_go(waiting.take_if(leaves));
  }
}

PageRoom Scheduler::State::room() const {
  PageRoom room{.cost = page_cost, .free = UINT64_MAX / 4};
  if (const std::uint64_t budget = shared->options.kv_budget; budget != 0) {
    room.free = budget - std::min(budget, shared->kv_pools->figures().used_bytes);
  }
  return room;
}

void Scheduler::State::make_plan(double time) {
  for (std::size_t i = 0; i < running.size(); ++i) {
    if (running[i]->planned.needed() != 1 || !running[i]->branches()) continue;
    if (running[i]->forks > 0) fork_samples(i);
    else if (!running[i]->search) begin_search(*running[i]);
  }
  const bool is_bounded = shared->options.kv_budget != 0;  // else nobody ever has to give way
  running_plans.clear();
  for (const ActivePtr& active : running) {
    PlannedRequest& planned = active->planned;
    planned.tenant_service = active->tenant->service;
    if (active->decoding && planned.needed() == 1) {
      const detail::Decoding::DraftWish wish = active->decoding->draft_wish();
      planned.drafts = wish.most;
      planned.branches = wish.branches;
      planned.draft_chance = wish.chance;
      planned.draft_seconds = wish.seconds;
    } else {
      planned.drafts = planned.branches = 0;
    }
    if (is_bounded && active->session) count_drop(*active);
    planned.held = is_bounded && active->session && can_give_way(*active) ? active->session->kv().bytes() : 0;
    if (is_bounded && active->search) {
      const BeamSearch::State::Pages of_beams = active->search->pages(*active->session);
      planned.next_bytes = of_beams.next;
      if (planned.held > 0) planned.held += of_beams.held;
    }
    running_plans.push_back(planned);
  }
  hold_drafts();
  PageRoom pages = room();
  std::uint64_t freed_by_held_back = 0;
  for (const ActivePtr& active : held_back) {
    if (active->session && !active->was_preempted && can_give_way(*active)) freed_by_held_back += active->session->kv().bytes();
  }
  const std::uint64_t free = pages.free;
  pages.free += freed_by_held_back;
  for (const ActivePtr& active : held_back) {
    if (!is_bounded || !active->decoding) continue;
    count_drop(*active);
    pages.free -= std::min(pages.free, bytes_set_aside(active->planned, page_cost));
  }
  StepLimits limits = options.limits;
  // Those who are set aside have their places.
  const auto kept = static_cast<std::uint32_t>(std::ranges::count_if(held_back, [](const ActivePtr& a) { return a->session && !a->was_preempted; }));
  limits.max_running = std::max(limits.max_running > kept ? limits.max_running - kept : 0, 1u);
  const std::size_t places = free_places(running_plans, limits);
  candidates.clear();
  candidate_plans.clear();
  if (places > 0 && !waiting.empty()) find_candidates(places, pages.free, time);
  planner.plan(running_plans, candidate_plans, pages, costs, *options.policy, limits, time, plan);
  // What the plan has counted on.
  for (std::size_t i = held_back.size(); plan.bytes > free && i-- > 0;) {
    Active& active = *held_back[i];
    if (!active.session || active.was_preempted || !can_give_way(active)) continue;
    give_way(active);
    if (plan.bytes <= room().free) break;
  }
}

// Whoever leaves it to goodput has drafts only as long as these have lost next to nothing.
void Scheduler::State::hold_drafts() noexcept {
  const auto by_goodput = [](const PlannedRequest& one) { return one.drafts > 0 && !std::isinf(one.draft_chance); };
  if (std::ranges::none_of(running_plans, by_goodput)) return;
  std::size_t rows = 0;
  for (const PlannedRequest& one : running_plans) rows += one.needed() == 1 ? one.beams : 0;
  if (ledger.may_draft(rows)) return;
  for (PlannedRequest& one : running_plans) {
    if (by_goodput(one)) one.drafts = 0;
  }
}

void Scheduler::State::close() noexcept {
  {
    const Lock lock(mutex);
    is_closed = true;  // the inbox gets no more
  }
  {
    const Lock driving(step_mutex);
    const auto stop = [this](const ActivePtr& active) {  // nullptr: of a step that failed
      if (active != nullptr) end(*active, make_error(ErrorCode::cancelled, "the scheduler was destroyed before the request had ended"));
    };
    for (const std::span<const ActivePtr> list : {std::span<const ActivePtr>(running), waiting.requests(), std::span<const ActivePtr>(held_back)}) {
      std::ranges::for_each(list, stop);
    }
    running.clear();
    waiting = {};
    held_back.clear();
    events.clear();
    for (bool more = true; more;) {
      ActivePtr next;
      {
        const Lock lock(mutex);
        if (!inbox.empty()) {
          next = std::move(inbox.front());
          inbox.pop_front();
        }
      }
      stop(next);
      more = next != nullptr;
    }
    note_counts();
    const Lock lock(mutex);
    has_news = true;  // for a driver: so that those who wait for it learn of the end
  }
  changed.notify_all();
  tell_readers();
}

}  // namespace tessera
