#include "scheduler/plan/planning.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::detail {

void Planning::make(double time) {
  look_at_running();
  hold_drafts();
  const std::uint64_t free = setup_.free_bytes();
  PageRoom pages{.cost = setup_.page_cost, .free = free};
  std::uint64_t held = 0, set_aside = 0;  // bytes that held-back requests can give up, and bytes that are reserved for held-back requests
  std::uint32_t places_kept = 0;          // number of held-back requests with pages, which count against max_running
  for (const ActivePtr& active : requests_.held_back()) {
    if (active->standing == Standing::held_back) {
      ++places_kept;
      if (preemption_.can_give_way(*active)) held += active->session->kv().bytes();
    }
    if (!setup_.is_bounded() || !active->decoding) continue;
    drops_.count(*active);
    set_aside += bytes_set_aside(active->planned, setup_.page_cost);
  }
  pages.free += held;
  pages.free -= std::min(pages.free, set_aside);
  StepLimits limits = setup_.options.limits;
  limits.max_running = std::max(limits.max_running > places_kept ? limits.max_running - places_kept : 0, 1u);
  const std::size_t places = free_places(running_, limits);
  candidates_.clear();
  if (places > 0 && !requests_.waiting().empty()) find_candidates(places, pages.free, time);
  planner_.plan(running_, candidates_.plans, pages, learnt_.costs, *setup_.options.policy, limits, time, plan_);
  preemption_.take_from_held_back(plan_.bytes, free);  // the plan assumes that `held` bytes are free: frees them
}

void Planning::look_at_running() {
  running_.clear();
  for (const ActivePtr& active : requests_.running()) {
    PlannedRequest& planned = active->planned;
    planned.tenant_service = active->tenant->service;
    if (active->decoding && planned.needed() == 1) {
      const Decoding::DraftWish wish = active->decoding->draft_wish();
      planned.drafts = wish.most;
      planned.branches = wish.branches;
      planned.draft_chance = wish.chance;
      planned.draft_seconds = wish.seconds;
    } else {
      planned.drafts = planned.branches = 0;
    }
    const bool has_bounds = setup_.is_bounded() && active->session;
    if (has_bounds) drops_.count(*active);
    planned.held = has_bounds && preemption_.can_give_way(*active) ? active->session->kv().bytes() : 0;
    if (setup_.is_bounded() && active->search) {
      const BeamSearch::State::Pages of_beams = active->search->pages(*active->session);
      planned.next_bytes = of_beams.next;
      if (planned.held > 0) planned.held += of_beams.held;
    }
    running_.push_back(planned);
  }
}

// If drafts have lost too much time (DraftLedger), removes the drafts of this step. Exception: requests that want drafts at any cost keep
// them.
void Planning::hold_drafts() noexcept {
  const auto by_goodput = [](const PlannedRequest& one) { return one.drafts > 0 && !std::isinf(one.draft_chance); };
  if (std::ranges::none_of(running_, by_goodput)) return;
  std::size_t rows = 0;
  for (const PlannedRequest& one : running_) rows += one.needed() == 1 ? one.beams : 0;
  if (learnt_.drafts.may_draft(rows)) return;
  for (PlannedRequest& one : running_) {
    if (by_goodput(one)) one.drafts = 0;
  }
}

// Fills candidates_ with the waiting requests that the step may admit, in the policy's order. The candidates for which the step may have
// rows and pages (the first ones, and short ones after them) are looked up in the prefix index again, because the index may have got their
// pages after the last look-up.
void Planning::find_candidates(std::size_t places, std::uint64_t free, double time) {
  const std::span<const PlannedRequest> plans = requests_.waiting().plans();
  planner_.first(plans, *setup_.options.policy, time, places, in_order_);
  prefixes_.look_up_some();
  const std::uint32_t most_rows = setup_.options.limits.rows;
  std::uint64_t rows = 0, bytes = 0;
  for (const std::size_t i : in_order_) {
    const bool is_short = plans[i].needed() - plans[i].saved <= most_rows;
    const bool is_in_reach = (rows < most_rows || is_short) && bytes <= free;
    if (is_in_reach) prefixes_.look_up(i);
    PlannedRequest planned = plans[i];
    if (is_in_reach) planned.awaits = prefixes_.awaited_by(*requests_.waiting().requests()[i], planned, running_, candidates_, time);
    const std::uint64_t all = setup_.page_cost.bytes(planned.prompt + planned.drawn - planned.dropped);
    bytes += all - std::min(all, planned.shared);
    if (planned.awaits == PlannedRequest::kNobody) rows += planned.needed() - planned.saved;
    candidates_.places.push_back(i);
    candidates_.plans.push_back(planned);
  }
}

}  // namespace tessera::detail
