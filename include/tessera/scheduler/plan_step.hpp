// What the next step consists of: a pure function of numbers, which a scheduler calls with its requests and a simulator
// without a model. An example, with a budget of 20 ms that 100 rows fill and three requests that decode:
//
//   running    a b c decode (a row each), d has 300 of its prompt's 900 tokens
//   waiting    e (a prompt of 40), f (a prompt of 5,000)
//   the step   a b c 1 row each, d 57 rows, e 40: it is shorter than d     nothing is left for f
//
// Requests that decode always go on: a prompt may take what the budget has beyond them, so none waits for a prompt longer
// than the budget says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tessera/scheduler/cost_model.hpp>
#include <tessera/scheduler/page_cost.hpp>
#include <tessera/scheduler/policy.hpp>

namespace tessera {

enum class Batching : std::int32_t {
  continuous = 0,  // requests come and go at every step
  dynamic = 1,     // a batch begins when max_running wait, or one has waited max_wait; none joins it until all have ended
  fixed = 2,       // a batch begins when the one before has ended, with those who wait
};

struct StepLimits {
  double seconds = 0.05;             // of a step in which requests decode
  std::uint32_t rows = 512;          // of any step
  std::uint32_t max_running = 64;    // requests at once; samples and beams count
  Batching batching = Batching::continuous;
  double max_wait = 0.1;             // seconds; dynamic batching
  // Of the tokens that running requests are still expected to draw, the share for whose pages there must be room when
  // another request is admitted. 0: only the page that each takes next. 1: nothing is ever preempted if lengths are right.
  double headroom = 0.25;
  // Of the rows that a step has for prompts of equal rank, the share of the one that came first, if shorter ones are served
  // before the rest of it. So it takes at most 1 / first_share of its time. 1: none is served before it.
  double first_share = 0.25;
};

// What of the KV pages can be had.
struct PageRoom {
  PageCost cost;
  std::uint64_t free = 0;  // bytes: without taking any from a running request
};

struct StepPlan {
  struct Part {
    std::size_t request;     // index into `running`, behind its end into `waiting`: running.size() + i
    std::uint32_t rows;      // drafts and all beams too
    std::uint32_t branches = 0;  // of its drafts, that there are pages for
  };
  std::vector<Part> parts;                // in order of service; what is admitted and resumed among them
  std::vector<std::size_t> preempted;     // indices into `running`, in order
  StepLoad load;
  std::uint64_t bytes = 0;                // of pages that the parts take
  double seconds = 0.0;                   // as the cost model predicts

  void clear() noexcept;
};

// Fills `plan`. Rules, in this order:
//   1. Requests that decode get a row each, in order of rank. One that needs a page of which there is none takes those of
//      a request behind it (the one that Policy::loss() gives), or gives way itself. Exception: a request that never gives its
//      pages up (PlannedRequest::keeps_pages) has the pages that it needs set aside, which no other request may have.
//   2. The rows that the budget and `rows` leave are for prompts: those that have begun, and, unless a request was preempted,
//      those that wait and for which there is a place, and room for the whole prompt and the headroom of all. The first for
//      which there is none ends this: none behind it is admitted.
//   3. They get them in order of rank, those of a rank as they came, but short ones do not wait for a long one: who has so much
//      less to compute that it is done first though the one before it has `first_share` of the rows, is served before the
//      rest of that one, the shortest first. One that awaits another, which computes its beginning in this step, is passed
//      over: its place and its pages are kept for it.
//   4. Unless a request was preempted, those that decode get rows for drafts while one more is expected to give more tokens
//      a second than the step does without it, within the budget, `rows` and the pages that are left. Where more than one
//      draft is worth it, they may branch as far as there are pages.
class StepPlanner {
 public:
  // Allocates nothing once its own lists and the plan's have grown.
  void plan(std::span<const PlannedRequest> running, std::span<const PlannedRequest> waiting, const PageRoom& room,
            const CostModel& costs, const Policy& policy, const StepLimits& limits, double now, StepPlan& plan);

  // The first `most` requests in the policy's order, as indices. Few of many, as a rule: the others are only looked at.
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
  struct Prompt {               // that may have rows of the step
    Ranked ranked;              // `index` as in StepPlan::Part
    std::size_t place = kWaits; // of a running one: in `running_`
    std::uint64_t left = 0;     // rows until its first token
    std::uint64_t bytes = 0;    // of a waiting one: that it needs to be admitted
    std::uint32_t rows = 0;     // of this step
    std::size_t part = 0;       // then: of the plan
  };

  std::vector<Ranked> running_, waiting_;
  enum class Mark : std::uint8_t { none, served, preempted };
  std::vector<Mark> marks_;  // [running]
  std::vector<Prompt> prompts_;
  std::vector<Prompt*> shorter_;  // of `prompts_`, those that are served before the rest of one
};

// Of max_running: how many requests more there is room for.
[[nodiscard]] std::uint32_t free_places(std::span<const PlannedRequest> running, const StepLimits& limits) noexcept;

// Bytes of the pages of one of the request's sequences, of `tokens` tokens.
[[nodiscard]] std::uint64_t sequence_bytes(const PlannedRequest& request, const PageCost& cost, std::uint64_t tokens) noexcept;
// Returns whether a drop (PlannedRequest::budget) follows the request's next `rows` rows.
[[nodiscard]] bool ends_in_drop(const PlannedRequest& request, std::uint64_t rows) noexcept;
// Bytes of pages that the request's next `rows` rows take, and a drop behind them.
[[nodiscard]] std::uint64_t bytes_of_rows(const PlannedRequest& request, const PageCost& cost, std::uint64_t rows) noexcept;
// Bytes that a request which never gives its pages up (PlannedRequest::keeps_pages) still takes until its end; 0 for other requests.
[[nodiscard]] std::uint64_t bytes_set_aside(const PlannedRequest& request, const PageCost& cost) noexcept;

// Bytes of pages that a request that has none needs to be admitted: for its prompt, and for `headroom` (StepLimits) of what
// it is expected to draw, or a page. Exception: one that will drop tokens needs pages for all tokens until then, and for the drop.
// A request for which there is never that much room can never be admitted.
[[nodiscard]] std::uint64_t bytes_to_admit(const PlannedRequest& request, const PageCost& cost, double headroom) noexcept;

// Rows of a prompt that a step of `load` has room for within `seconds`, of which the first sees `position` + 1 keys; at
// most `most`.
[[nodiscard]] std::uint32_t rows_within(const CostModel& costs, const StepLoad& load, double seconds, std::uint64_t position,
                                        std::uint32_t most) noexcept;

}  // namespace tessera
