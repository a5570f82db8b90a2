// One step: who is in it, what it computes, who gets what.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kv_setup.hpp"
#include "engine/streams.hpp"
#include "scheduler/scheduler_state.hpp"
#include "support/error.hpp"
#include "support/fp_state.hpp"

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

// The order of requests, whatever was moved.
void insert_by_order(std::vector<ActivePtr>& list, ActivePtr active) {
  const auto at = std::ranges::upper_bound(list, active->order(), {}, [](const ActivePtr& one) { return one->order(); });
  list.insert(at, std::move(active));
}

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

// The model has pushed everybody's state out of the caches: it is asked for together.
template <class T>
void fetch_lines(const T* from) noexcept {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < sizeof(T); at += kLine) __builtin_prefetch(reinterpret_cast<const std::byte*>(from) + at, 1);
}
void fetch_ahead(const Active& active) noexcept {
  fetch_lines(&active);
  fetch_lines(active.request.get());
}

enum class Wish { go_on, hold_back, stop };

Wish wish(const Active& active) {
  const Lock lock(active.request->mutex);
  const RequestHandle::State& request = *active.request;
  if (request.is_cancelled || request.has_failed || request.error || active.wanted.generate.stop.stop_requested()) return Wish::stop;
  return active.request->holds_back() ? Wish::hold_back : Wish::go_on;
}

}  // namespace

Result<bool> Scheduler::State::step() {
  std::vector<RequestEvent> told;
  std::vector<std::pair<std::shared_ptr<RequestHandle::State>, RequestPiece>> given;
  Result<bool> more = false;
  {
    const Lock driving(step_mutex);
    const detail::FpState fp_state;
    more = guard([&]() -> Result<bool> { return step_alone(); });
    told = std::exchange(events, {});
    given = std::exchange(pieces, {});
    if (!more) look_again();  // what it had seen of wishes it may not have heeded
  }
  // Callbacks run without a lock.
  for (auto& [request, piece] : given) {
    const Status called = guard([to = request.get(), what = &piece]() -> Status { return to->on_piece(*what), Status(); },
                                ErrorCode::callback_failed);
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
    for (const RequestEvent& event : told) options.on_event(event);
  }
  if (kv_watch != nullptr) tell_kv_events();
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
    request->on_ready();
  }
}

// In order, though several threads may drive: one at a time hands them out, and takes those of the others along.
void Scheduler::State::tell_kv_events() noexcept {
  bool more = true;
  while (more && !is_telling.exchange(true)) {
    (void)guard([&]() -> Status {  // without memory the next step tells all
      for (const KvEvent& event : kv_watch->take()) options.on_kv_event(event);
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
  if (!nothing) computed = compute(begin);
  sort_out();
  const Lock lock(mutex);
  waiting_now = waiting.size() + held_back.size();
  running_now = running.size();
  for (const auto& [name, tenant] : tenants.all()) figures.tenants.insert_or_assign(name, tenant);
  figures.costs = costs.costs();
  figures.cost_error = costs.mean_error();
  costs_guess = costs;
  estimate_wait();
  wake_time = kNever;
  if (nothing && !waiting.empty()) {
    wake_time = options.limits.batching == Batching::dynamic && running.empty()
                    ? std::ranges::min(waiting.plans(), {}, &PlannedRequest::submitted).submitted + options.limits.max_wait
                    : begin + kRetry;
  }
  figures.planning.add(steady_seconds() - begin_steady - engine_seconds);
  return computed || !inbox.empty() || (!nothing && !(running.empty() && waiting.empty()));
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
    Tenants::Tenant& tenant = tenants.named(next->wanted.tenant);
    (void)guard([&]() -> Status { return next->probe = probe_of(*next), Status(); });  // else it is planned without
    next->tenant = &tenant;
    tenants.submitted(tenant);
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
    if (running[i]->forks > 0 && running[i]->planned.needed() == 1) fork_samples(i);
  }
  const bool is_bounded = shared->options.kv_budget != 0;  // else nobody ever has to give way
  running_plans.clear();
  for (const ActivePtr& active : running) {
    PlannedRequest& planned = active->planned;
    planned.tenant_service = active->tenant->service;
    if (active->decoding && planned.needed() == 1) {
      const detail::Decoding::DraftWish wish = active->decoding->draft_wish();
      planned.drafts = wish.most;
      planned.draft_chance = wish.chance;
      planned.draft_seconds = wish.seconds;
    } else {
      planned.drafts = 0;
    }
    planned.held = is_bounded && active->session && can_give_way(*active) ? active->session->kv().bytes() : 0;
    running_plans.push_back(planned);
  }
  PageRoom pages = room();
  std::uint64_t set_aside = 0;
  for (const ActivePtr& active : held_back) {
    if (active->session && !active->was_preempted && can_give_way(*active)) set_aside += active->session->kv().bytes();
  }
  const std::uint64_t free = pages.free;
  pages.free += set_aside;
  StepLimits limits = options.limits;
  // Those who are set aside have their places.
  const auto kept = static_cast<std::uint32_t>(std::ranges::count_if(held_back, [](const ActivePtr& a) { return a->session && !a->was_preempted; }));
  limits.max_running = std::max(limits.max_running > kept ? limits.max_running - kept : 0, 1u);
  const std::size_t places = limits.max_running - std::min<std::size_t>(limits.max_running, running.size());
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

// The plan's step. false: nothing was computed.
bool Scheduler::State::compute(double begin) {
  const double offering = steady_seconds();
  // Room for all of it first: nobody is lost on the way from one list to another, and no piece that has been drawn.
  std::vector<InStep> members;
  std::vector<Drawn> drawn(plan.parts.size());
  std::vector<std::pair<ActivePtr, Error>> failed;
  const std::size_t before = running_plans.size();
  members.reserve(plan.parts.size());
  std::size_t most_pieces = 0;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const std::size_t request = plan.parts[i].request, most = 1 + (request < before ? running_plans[request].drafts : 0);
    drawn[i].pieces.reserve(most);
    most_pieces += most;
  }
  gaps.clear();
  gaps.reserve(most_pieces);
  pieces.reserve(most_pieces);
  failed.reserve(plan.parts.size());
  admitted.reserve(plan.parts.size());
  running.reserve(running.size() + plan.parts.size());
  waiting.make_room(plan.preempted.size() + plan.parts.size());
  detail::Run run(*shared, detail::all_layers(*shared));
  for (const std::size_t index : plan.preempted) {
    give_way(*running[index]);
    waiting.add(std::move(running[index]));
  }
  for (const StepPlan::Part& part : plan.parts) {
    const bool is_new = part.request >= before;
    if (is_new) admitted.push_back(waiting.lift(candidates[part.request - before]));
    ActivePtr& place = is_new ? admitted.back() : running[part.request];
    Active& active = *place;
    Status status;
    if (is_new) status = admit(active, begin);
    if (status) status = put_in(run, active, part.rows, members);
    if (status) continue;
    failed.emplace_back(nullptr, std::move(status).error());
    failed.back().first = std::move(place);
    if (is_new) admitted.pop_back();
  }
  engine_seconds = steady_seconds() - offering;
  std::erase(running, nullptr);
  waiting.close_gaps();
  for (ActivePtr& active : admitted) insert_by_order(running, std::move(active));
  admitted.clear();
  for (auto& [active, error] : failed) fail_or_wait(std::move(active), error);
  if (members.empty()) return !plan.preempted.empty() || !failed.empty();

  const double computing = steady_seconds();
  run.compute();
  const double after = now();
  StepLoad load;
  double drafting = 0.0;
  for (const InStep& member : members) {
    if (member.draws_at_once) continue;
    drafting += member.active->decoding->drafting_seconds();
    const detail::Part& part = run.part(member.active->decoding->part());
    const std::uint64_t rows = part.rows - part.adopted;
    load.rows += static_cast<std::uint32_t>(rows);
    load.outputs += static_cast<std::uint32_t>(std::ranges::count_if(
        run.rows(member.active->decoding->part()), [](const detail::RunRow& row) { return row.output != detail::RowOutput::nothing; }));
    load.keys += rows * (part.begin + part.adopted) + rows * (rows + 1) / 2;
    if (part.adopted > 0) count_reused(*member.active, part.adopted);
  }
  for (std::size_t i = 0; i < members.size(); ++i) draw(run, members[i], drawn[i]);
  std::uint64_t delivered = 0;
  for (const Drawn& one : drawn) delivered += one.pieces.size();
  engine_seconds += steady_seconds() - computing;
  for (const InStep& member : members) fetch_ahead(*member.active);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::shared_ptr<RequestHandle::State> request = members[i].active->request;
    const Status given = guard([&]() -> Status { return finish_part(*members[i].active, std::move(drawn[i]), begin, after), Status(); });
    if (!given) fail(*request, given.error());  // the others get theirs
  }
  costs.observe(load, after - begin - drafting);
  const Lock lock(mutex);
  ++figures.steps;
  figures.step.add(after - begin);
  figures.rows.add(load.rows);
  figures.tokens += delivered;
  for (const Gap& gap : gaps) figures.inter_token.add(gap.seconds, gap.tokens);
  return true;
}

// What others computed while it was at its prompt.
void Scheduler::State::count_reused(const Active& active, std::uint64_t tokens) noexcept {
  const Lock lock(active.request->mutex);
  active.request->figures.reused_tokens += tokens;
}

// Offers the request's rows; it becomes a member of the step.
Status Scheduler::State::put_in(detail::Run& run, Active& active, std::uint32_t rows, std::vector<InStep>& members) {
  // All but the prompt's last token is the samples' in common. One that decodes may have drafts.
  const std::uint64_t most = active.forks > 0               ? active.planned.needed() - 1
                             : active.planned.needed() == 1 ? 1 + active.planned.drafts
                                                            : active.planned.needed();
  rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, most));
  if (rows == 0) return {};
  return guard([&]() -> Status {
    for (;;) {
      TESSERA_TRY(const bool offered, active.decoding->offer(run, rows));
      const Status ready = offered ? detail::make_ready(run, active.decoding->part()) : Status();
      if (!ready && active.decoding->retries_without_drafts(ready.error())) continue;
      TESSERA_TRY_STATUS(ready);
      members.push_back({.active = &active, .draws_at_once = !offered});
      return {};
    }
  });
}

// All pieces that are known: between two steps nobody has rows ahead, so that pages can be taken from anybody.
void Scheduler::State::draw(detail::Run& run, const InStep& member, Drawn& drawn) {
  detail::Decoding& decoding = *member.active->decoding;
  drawn.status = guard([&]() -> Status {
    if (member.draws_at_once) {
      TESSERA_TRY(Piece piece, decoding.draw());
      drawn.pieces.push_back(std::move(piece));
    } else {
      const Status& computed = run.outcome(decoding.part());
      if (!computed && decoding.retries_without_drafts(computed.error())) return {};  // in the next step
      TESSERA_TRY(std::optional<Piece> piece, decoding.take(run));
      if (piece) drawn.pieces.push_back(*std::move(piece));
    }
    while (decoding.is_ahead()) {
      TESSERA_TRY(Piece piece, decoding.draw());
      drawn.pieces.push_back(std::move(piece));
    }
    return {};
  });
}

void Scheduler::State::close() noexcept {
  (void)guard([&]() -> Status {
    {
      const Lock lock(mutex);
      is_closed = true;
    }
    {
      const Lock driving(step_mutex);
      take_inbox();
      for (const std::span<const ActivePtr> list : {std::span<const ActivePtr>(running), waiting.requests(), std::span<const ActivePtr>(held_back)}) {
        for (const ActivePtr& active : list) {
          end(*active, make_error(ErrorCode::cancelled, "the scheduler was destroyed before the request had ended"));
        }
      }
      running.clear();
      waiting = {};
      held_back.clear();
      events.clear();
    }
    const Lock lock(mutex);
    waiting_now = running_now = 0;
    return {};
  });
  changed.notify_all();
  tell_readers();
}

}  // namespace tessera
