// A policy decides the order in which a scheduler serves requests, and which request gives its KV pages up when pages are short. A policy
// is two pure functions of plain numbers: rank() and loss(). Choose one of the policies below, or derive your own from Policy:
//
//   struct LongestFirst final : tessera::Policy {
//     std::string_view name() const noexcept override { return "longest first"; }
//     double rank(const tessera::PlannedRequest& request, double) const noexcept override {
//       return -static_cast<double>(request.prompt);
//     }
//   };
//   auto scheduler = tessera::Scheduler::create(engine, {.policy = std::make_shared<LongestFirst>()});
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

namespace tessera {

// The numbers of one request that the planner and policies see. A *running* request has been admitted and has its KV pages. A *waiting*
// request is not admitted yet, or has given its pages up.
struct PlannedRequest {
  std::uint64_t id = 0;
  std::uint64_t order = 0;             // the order of submission, from 0; it decides between equal ranks
  std::int32_t priority = 0;           // lower comes first
  double submitted = 0.0;              // seconds of the scheduler's clock
  double deadline = std::numeric_limits<double>::infinity();  // latest time of the last token, on the scheduler's clock
  double tenant_service = 0.0;         // TenantFigures::service of its tenant: tokens times prices, divided by the tenant's weight
  std::uint64_t prompt = 0;            // tokens of the prompt
  std::uint64_t drawn = 0;             // tokens drawn so far, after the prompt
  std::uint64_t expected = 0;          // tokens that will be drawn in all: max_tokens, or an estimate
  std::uint64_t computed = 0;          // tokens of prompt and answer whose keys and values are in the cache
  std::uint64_t dropped = 0;           // `computed` tokens whose keys and values were dropped, by a stream or by a budget of tokens
  std::uint64_t budget = 0;            // number of tokens in the cache at which tokens are dropped, once the prompt is computed; 0: never
  // Bytes that the request's next drop of tokens needs, in addition to the pages of the rows before the drop. The sum of: copies of shared
  // pages; pages that a window has passed, because later tokens move up into them; bytes that are set aside for the time after the drop.
  std::uint64_t drop_bytes = 0;
  std::uint64_t copy_bytes = 0;        // bytes of the copies that the next row makes of shared pages that are not full
  // True: the request never gives its pages up, because they could not be computed again (tokens have been dropped, for example). Therefore
  // the pages that it will need until its end are set aside.
  bool keeps_pages = false;
  bool keeps_windows = false;          // true: pages that sliding windows have passed stay in use
  std::uint64_t saved = 0;             // waiting requests: tokens not yet computed that the prefix index has
  std::uint64_t held = 0;              // bytes of pages that the plan counts as free if the request gives its pages up (shared pages too)
  std::uint64_t shared = 0;            // waiting requests: bytes of the pages of `saved` that other sequences use already
  // Waiting requests: the `order` of a request that is served earlier and whose prompt begins in the same way; kNobody: there is none.
  // While the other request has rows in a step, this request gets none: afterwards it shares the other request's pages and need not compute
  // them.
  std::uint64_t awaits = kNobody;
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  // For speculation; only decoding requests with a drafter. drafts: the largest number of drafts that the request may have in a step.
  // draft_chance: probability that a draft is accepted if the drafts before it were accepted; infinite: make all drafts, even if they do
  // not pay. draft_seconds: time to make one draft.
  std::uint32_t drafts = 0;
  std::uint32_t branches = 0;          // chains that may branch off the first chain of drafts; each takes a page of each group of layers
  double draft_chance = 0.0, draft_seconds = 0.0;
  // For beam searches. beams: number of sequences that the request follows at once. While the request decodes, each sequence has a row in a
  // step; `drawn` counts the tokens of one sequence. next_bytes: bytes of pages that the next step takes for all sequences together.
  std::uint32_t beams = 1;
  std::uint64_t next_bytes = 0;
  bool suspended = false;              // waiting requests: the pages of all `computed` tokens are in the kv_file and will be read back

  // Returns how many rows of a sequence have to be computed before its next token can be drawn. While the request decodes, the result is 1.
  // In a beam search this 1 means one row of each beam.
  [[nodiscard]] std::uint64_t needed() const noexcept { return prompt + drawn - computed; }
  // Returns how many rows are expected to be computed from now until the request ends.
  [[nodiscard]] std::uint64_t remaining() const noexcept {
    const std::uint64_t more = expected > drawn ? expected - drawn - 1 : 0;  // the last token is drawn and not computed
    return needed() - saved + more;
  }
};

class Policy {
 public:
  virtual ~Policy() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  // Returns the request's rank: a number that decides the order. A request of a lower rank is served first; requests of equal rank, in
  // order of submission. `now`: the time on the scheduler's clock.
  [[nodiscard]] virtual double rank(const PlannedRequest& request, double now) const noexcept = 0;
  // Returns how much is lost if this request gives its pages up. When a request needs pages and none is free, one of the running requests
  // that come after it in the order gives its pages up: the one with the lowest loss. Default: the number of tokens that would have to be
  // computed again, divided by the bytes that would become free.
  [[nodiscard]] virtual double loss(const PlannedRequest& request, double now) const noexcept;
};
using PolicyPtr = std::shared_ptr<const Policy>;

// Serves requests in order of submission.
[[nodiscard]] PolicyPtr first_come();
// Serves requests by PlannedRequest::priority (lower first), then in order of submission.
[[nodiscard]] PolicyPtr by_priority();
// Serves the request with the least remaining work (in tokens) first. For each second that a request waits, `aging` tokens are subtracted
// from its work, so that no request waits for ever.
[[nodiscard]] PolicyPtr shortest_first(double aging = 20.0);
// Serves the request with the earliest Request::deadline first.
[[nodiscard]] PolicyPtr earliest_deadline();
// Serves first the requests of the tenant that has been served least so far (TenantFigures::service). This is the virtual token counter of
// Sheng et al., "Fairness in Serving Large Language Models" (OSDI 2024).
[[nodiscard]] PolicyPtr fair_by_tenant();
// Serves the request with the greatest share of known tokens first. Known tokens need not be computed: they are in the prefix index, or are
// computed already. For each second that a request waits, `aging` is added to its share, so that no request waits for ever.
[[nodiscard]] PolicyPtr prefix_first(double aging = 0.1);

}  // namespace tessera
