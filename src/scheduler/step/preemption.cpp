#include "scheduler/step/preemption.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "engine/session/edit.hpp"

namespace tessera::detail {

using Kind = RequestEvent::Kind;
using Lock = std::unique_lock<std::mutex>;

namespace {

bool can_be_recomputed(const Active& active) noexcept {
  return !active.has_earlier_votes && can_give_pages_up(state_of(*active.session));
}

}  // namespace

bool Preemption::can_give_way(const Active& active) const noexcept {
  return active.session->kv().kind() == KvKind::paged && (setup_.has_kv_file() || can_be_recomputed(active));
}

void Preemption::give_way(Active& active) noexcept {
  give_search_up(active);
  Session& session = *active.session;
  const std::uint64_t tokens = session.position(), bytes = session.kv().bytes();
  const auto rows = static_cast<std::uint32_t>(tokens);
  const double again = learnt_.costs.predict({.rows = rows, .outputs = 1, .keys = tokens * tokens / 2});
  const bool must_stay_whole = !can_be_recomputed(active);
  PlannedRequest& planned = active.planned;
  planned.suspended = setup_.has_kv_file() && (must_stay_whole || 2 * static_cast<double>(bytes) / learnt_.file_rate < again) &&
                      session.suspend().has_value();
  if (planned.suspended) {
    active.standing = Standing::suspended;
  } else if (!must_stay_whole) {
    give_pages_up(state_of(session));
    active.standing = Standing::given_up;
    active.was_recomputed = true;
    active.lost_tokens = tokens;
    planned.computed = 0;
    planned.copy_bytes = 0;
    planned.drop_bytes = active.passed_bytes;
  }
  delivery_.tell(Kind::preempted, active, host_.now());
  {
    const Lock lock(active.request->mutex);
    active.request->phase = RequestState::waiting;
    ++active.request->figures.preemptions;
  }
  accounts_.figures.with([&](SchedulerFigures& figures) { ++(planned.suspended ? figures.suspended : figures.recomputed); });
}

void Preemption::give_search_up(Active& active) noexcept {
  if (!active.search) return;
  const std::uint64_t rows = active.search->rows();
  active.search.reset();
  active.planned.drawn = 0;
  active.planned.computed = active.planned.prompt - 1;
  {
    const Lock lock(active.request->mutex);
    active.request->figures.recomputed_tokens += rows;
  }
  accounts_.figures.with([&](SchedulerFigures& figures) { figures.recomputed_tokens += rows; });
}

void Preemption::take_from_held_back(std::uint64_t wanted, std::uint64_t free) noexcept {
  const auto held_back = requests_.held_back();
  for (std::size_t i = held_back.size(); wanted > free && i-- > 0;) {
    Active& active = *held_back[i];
    if (active.standing != Standing::held_back || !can_give_way(active)) continue;
    give_way(active);
    free = setup_.free_bytes();
  }
}

void Preemption::fail_or_wait(ActivePtr active, const Error& error, bool have_others_failed) noexcept {
  const bool for_pages = error.code() == ErrorCode::cache_full || error.code() == ErrorCode::out_of_memory;
  const bool in_context = !active->session || active->session->tokens().size() + active->wanted.prompt.size() <= active->session->context() ||
                          active->session->position() < active->session->context() || view_of(state_of(*active->session)).stream.window != 0;
  bool others = have_others_failed;
  requests_.each([&](const Active& one) { others |= one.session && one.session->kv().bytes() > 0; });
  if (!for_pages || !in_context || !others) {
    delivery_.end(*active, error);
    return;
  }
  accounts_.figures.with([](SchedulerFigures& figures) { ++figures.out_of_room; });
  if (active->planned.budget != 0 && !setup_.has_kv_file() && active->decoding && !can_give_way(*active)) {
    is_stuck_ = true;  // no request can help: sessions of the host have the pages
    requests_.run(std::move(active));
    return;
  }
  if (active->session && !active->was_preempted() && can_give_way(*active)) give_way(*active);
  give_search_up(*active);
  requests_.wait(std::move(active));
}

}  // namespace tessera::detail
