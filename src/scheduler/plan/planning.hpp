// Collects the input of StepPlanner, and keeps the plan until the step is done. Used only by the driving thread.
#pragma once

#include <span>
#include <vector>

#include "scheduler/step/drops.hpp"
#include "scheduler/plan/learnt.hpp"
#include "scheduler/step/prefixes.hpp"
#include "scheduler/requests/requests.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

class Planning {
 public:
  Planning(const Setup& setup, Requests& requests, Prefixes& prefixes, Drops& drops, Preemption& preemption, Learnt& learnt)
      : setup_(setup), requests_(requests), prefixes_(prefixes), drops_(drops), preemption_(preemption), learnt_(learnt) {}

  // Makes the plan. If the plan needs pages of held-back requests (paused requests, or requests whose pieces nobody reads), frees these
  // pages. Throws bad_alloc.
  void make(double time);

  [[nodiscard]] const StepPlan& plan() const noexcept { return plan_; }
  // Returns the requests that were running when the plan was made. A share of the plan (StepPlan::Share) is the rows of one request.
  // Share::request is an index into running() if it is below running().size(). Otherwise Share::request - running().size() is an index into
  // the candidates, which are the waiting requests that may be admitted.
  [[nodiscard]] std::span<const PlannedRequest> running() const noexcept { return running_; }
  [[nodiscard]] bool is_new(const StepPlan::Share& share) const noexcept { return share.request >= running_.size(); }
  // Returns the index, in the list of waiting requests, of the request that this share admits. Precondition: is_new(share).
  [[nodiscard]] std::size_t place_of_new(const StepPlan::Share& share) const noexcept {
    return candidates_.places[share.request - running_.size()];
  }
  [[nodiscard]] const PlannedRequest& planned(const StepPlan::Share& share) const noexcept {
    return is_new(share) ? candidates_.plans[share.request - running_.size()] : running_[share.request];
  }

 private:
  void look_at_running();
  void hold_drafts() noexcept;
  void find_candidates(std::size_t places, std::uint64_t free, double time);

  const Setup& setup_;
  Requests& requests_;
  Prefixes& prefixes_;
  Drops& drops_;
  Preemption& preemption_;
  Learnt& learnt_;

  StepPlanner planner_;
  StepPlan plan_;
  std::vector<PlannedRequest> running_;
  std::vector<std::size_t> in_order_;  // indices of waiting requests, in the policy's order; only the first ones
  Candidates candidates_;
};

}  // namespace tessera::detail
