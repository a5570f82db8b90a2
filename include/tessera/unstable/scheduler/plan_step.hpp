// Plans a scheduler's next step: how many rows each request gets, and which requests are admitted or preempted. The plan depends only on
// numbers, so a scheduler calls the planner with its requests, and a simulator can call it without a model. Example: a step may take 20 ms,
// in which 100 rows can be computed.
//
//   running    a, b and c decode (1 row each); d has computed 300 of its prompt's 900 tokens
//   waiting    e (a prompt of 40 tokens), f (a prompt of 5,000 tokens)
//   the step   a, b and c: 1 row each. e: all 40 rows, because it is shorter than d. d: the remaining 57 rows. f: no rows
//
// Requests that decode always get their row. Prompts get the rows that are left within the step's time, so no decoding request waits longer
// than that for another request's prompt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tessera/extend/scheduler/cost_model.hpp>
#include <tessera/scheduler/policy.hpp>
#include <tessera/scheduler/step_limits.hpp>
#include <tessera/unstable/kv/page_cost.hpp>

namespace tessera {

// The KV pages that requests can get. cost: says how many pages and bytes a sequence of a given length takes.
struct PageRoom {
  PageCost cost;
  std::uint64_t free = 0;  // bytes that are free without taking pages from a running request
};

struct StepPlan {
  struct Share {             // the rows of one request
    std::size_t request;     // index into `running`; running.size() + i is waiting[i]
    std::uint32_t rows;      // rows, drafts and beams included
    std::uint32_t branches = 0;  // branches of the request's drafts for which there are pages
  };
  std::vector<Share> shares;                // in order of service, admitted and resumed requests included
  std::vector<std::size_t> preempted;     // indices into `running`, in order
  StepLoad load;
  std::uint64_t bytes = 0;                // bytes of pages that the shares take
  double seconds = 0.0;                   // the time that the cost model predicts

  void clear() noexcept;
};

// Makes the plan of a step. plan() applies these rules, in this order:
//   1. Requests that decode get a row each, in order of rank. If a request needs a page and none is free, one of the running requests that
//      come after it in this order is preempted: the one with the lowest Policy::loss(). If no request comes after it, the request itself
//      is preempted. Exception: a request that never gives its pages up (PlannedRequest::keeps_pages) is not preempted. The pages that it
//      needs until its end are set aside, and no other request may have them.
//   2. The rows that are left (StepLimits::seconds, StepLimits::rows) are for prompts. Prompts that have begun go on. Unless a request was
//      preempted in this step, waiting requests are admitted in order of rank. A request is admitted if fewer than max_running requests
//      run (samples and beams count), and if the free pages suffice for its whole prompt and for the headroom of all requests
//      (StepLimits::headroom). At the first waiting request for which the free pages do not suffice, admission ends: no request after it is
//      admitted in this step.
//   3. Prompts get rows in order of rank, then of arrival. Exception: the first prompt keeps `first_share` of the rows; later prompts of
//      the same rank that would still finish earlier are served before the rest of the first prompt, the shortest first. A prompt gets no
//      rows if another request computes its beginning in this step (PlannedRequest::awaits). Its place and pages stay reserved for it.
//   4. Unless a request was preempted, decoding requests get rows for drafts. A draft is added if the step is then expected to give more
//      tokens a second, and if the step's time, rows and free pages allow it. From its second draft on, a request's drafts may branch, as
//      far as there are pages.
class StepPlanner {
 public:
  // Writes the plan for the `running` and `waiting` requests at the time `now` to `plan`. Allocates nothing once its own lists and the
  // plan's have grown.
  void plan(std::span<const PlannedRequest> running, std::span<const PlannedRequest> waiting, const PageRoom& room,
            const CostModel& costs, const Policy& policy, const StepLimits& limits, double now, StepPlan& plan);

  // Writes to `indices` the indices of the `most` requests that the policy serves first, in its order. The other requests are not sorted.
  void first(std::span<const PlannedRequest> requests, const Policy& policy, double now, std::size_t most,
             std::vector<std::size_t>& indices);

 private:
  struct Ranked {
    double rank;
    std::uint64_t order;
    std::size_t index;
    bool operator<(const Ranked& other) const noexcept {
      return rank != other.rank ? rank < other.rank : order < other.order;
    }
  };
  class Making;
  static Ranked ranked(std::span<const PlannedRequest> requests, std::size_t index, const Policy& policy, double now);
  static void rank_first(std::span<const PlannedRequest> requests, const Policy& policy, double now, std::size_t most,
                         std::vector<Ranked>& queue);

  static constexpr std::size_t kWaits = ~std::size_t{0};
  struct Prompt {               // a prompt that may get rows of the step
    Ranked ranked;              // `index` as in StepPlan::Share
    std::size_t place = kWaits; // index in `running_` of a running request; kWaits: the request is waiting
    std::uint64_t left = 0;     // rows that must be computed before the next token can be drawn
    std::uint64_t bytes = 0;    // bytes that a waiting request needs to be admitted
    std::uint32_t rows = 0;     // rows that the prompt gets in this step
    std::size_t share = 0;      // index in the plan's shares, if the prompt gets rows
  };

  std::vector<Ranked> running_, waiting_;
  enum class Mark : std::uint8_t { none, served, preempted };
  std::vector<Mark> marks_;  // [running]
  std::vector<Prompt> prompts_;
  std::vector<Prompt*> shorter_;  // prompts that are served before the rest of a longer one
};

// Returns how many more requests may run beside `running` until max_running is reached. A beam search counts as many times as it has beams.
[[nodiscard]] std::uint32_t free_places(std::span<const PlannedRequest> running, const StepLimits& limits) noexcept;

// Returns the bytes of the pages that one sequence of the request takes with `tokens` tokens (a beam search has several sequences).
[[nodiscard]] std::uint64_t sequence_bytes(const PlannedRequest& request, const PageCost& cost, std::uint64_t tokens) noexcept;
// Returns whether tokens will be dropped (PlannedRequest::budget) after the request's next `rows` rows.
[[nodiscard]] bool ends_in_drop(const PlannedRequest& request, std::uint64_t rows) noexcept;
// Returns how many bytes of pages the request's next `rows` rows take. If tokens are dropped after these rows (ends_in_drop()), the pages
// for that are included.
[[nodiscard]] std::uint64_t bytes_of_rows(const PlannedRequest& request, const PageCost& cost, std::uint64_t rows) noexcept;
// Returns how many more bytes of pages the request will take until its end, if it never gives its pages up (PlannedRequest::keeps_pages),
// and 0 otherwise. The planner keeps these bytes free for the request.
[[nodiscard]] std::uint64_t bytes_set_aside(const PlannedRequest& request, const PageCost& cost) noexcept;

// Returns the bytes of pages that must be free before a waiting request is admitted: for its prompt, and for the share `headroom`
// (StepLimits) of the tokens that it is expected to draw, at least a page. Exception: a request that will drop tokens needs the pages of
// all tokens until its first drop, and the pages for the drop itself. If the result is more than the pools can ever have, the request can
// never be admitted.
[[nodiscard]] std::uint64_t bytes_to_admit(const PlannedRequest& request, const PageCost& cost, double headroom) noexcept;

// Returns how many rows of a prompt, at most `most`, can be added to a step with the work `load`, so that the step takes at most `seconds`.
// `position`: the position of the first of these rows, which sees `position` + 1 keys.
[[nodiscard]] std::uint32_t rows_within(const CostModel& costs, const StepLoad& load, double seconds, std::uint64_t position,
                                        std::uint32_t most) noexcept;

}  // namespace tessera
