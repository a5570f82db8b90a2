// A policy decides which request is served next and which one gives way: two pure functions of plain numbers. Choose one of the
// functions below, or derive from Policy:
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

// A request as the planner and policies see it. "Waiting" requests have no place in the running set; "running" ones have.
struct PlannedRequest {
  std::uint64_t id = 0;
  std::uint64_t order = 0;             // the order of submission, from 0; it decides between equal ranks
  std::int32_t priority = 0;           // lower comes first
  double submitted = 0.0;              // seconds of the scheduler's clock
  double deadline = std::numeric_limits<double>::infinity();  // seconds of the scheduler's clock, for its last token
  double tenant_service = 0.0;         // tokens served to its tenant, times their prices over the tenant's weight
  std::uint64_t prompt = 0;            // tokens of the prompt
  std::uint64_t drawn = 0;             // tokens drawn so far, behind the prompt
  std::uint64_t expected = 0;          // tokens that will be drawn in all: max_tokens, or an estimate
  std::uint64_t computed = 0;          // tokens of prompt and answer whose keys and values are in the cache
  std::uint64_t dropped = 0;           // `computed` tokens that were evicted, by a sliding stream or by a budget of tokens
  std::uint64_t budget = 0;            // tokens at which tokens are dropped, once the prompt is computed; 0: never
  // Bytes of pages that the next drop takes beside the pages of the rows before it: copies of shared pages, pages that a window
  // has passed, and the bytes set aside for the request from then on.
  std::uint64_t drop_bytes = 0;
  std::uint64_t copy_bytes = 0;        // bytes of page copies that the next row makes: of a shared page that is not full
  // Tokens of the request have been dropped, so it could not be computed again: the request never gives its pages up, and the
  // pages that it needs until its end are set aside.
  bool keeps_pages = false;
  bool keeps_windows = false;          // sliding windows of the request give no pages back
  std::uint64_t saved = 0;             // waiting requests: tokens not yet computed that the prefix index has
  std::uint64_t held = 0;              // bytes of pages that the request alone holds: free if it gives way
  std::uint64_t shared = 0;            // waiting requests: bytes of pages of the prompt's beginning that running requests hold
  // Waiting requests: the `order` of a running request that is computing the same beginning. This request waits in every step in
  // which the other one has rows.
  std::uint64_t awaits = kNobody;
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  // Decoding requests with a drafter: drafts that the request may have in a step; the probability that a draft is accepted if the
  // earlier ones were (infinite: make all drafts, whether they pay or not); seconds that making a draft takes.
  std::uint32_t drafts = 0;
  std::uint32_t branches = 0;          // further chains of drafts, each of which takes a page of each group
  double draft_chance = 0.0, draft_seconds = 0.0;
  // Beam searches: sequences that the request follows at once, with a row each while it decodes; `drawn` counts the tokens of one
  // sequence. next_bytes: bytes of pages that the next step takes for all sequences together.
  std::uint32_t beams = 1;
  std::uint64_t next_bytes = 0;
  bool suspended = false;              // waiting requests: the `computed` tokens lie in the kv_file, and come back whole

  // Returns the rows until the next token is drawn: 1 while the request decodes (for each beam).
  [[nodiscard]] std::uint64_t needed() const noexcept { return prompt + drawn - computed; }
  // Returns the expected rows until the request ends.
  [[nodiscard]] std::uint64_t remaining() const noexcept {
    const std::uint64_t more = expected > drawn ? expected - drawn - 1 : 0;  // the last token is drawn and not computed
    return needed() - saved + more;
  }
};

class Policy {
 public:
  virtual ~Policy() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  // Returns the request's rank. The lowest rank is served first; equal ranks in order of submission.
  [[nodiscard]] virtual double rank(const PlannedRequest& request, double now) const noexcept = 0;
  // Returns what is lost if the request gives its pages up. When a request needs pages, the running request behind it with the
  // lowest loss gives way. Default: the work that is lost for each byte that becomes free.
  [[nodiscard]] virtual double loss(const PlannedRequest& request, double now) const noexcept;
};
using PolicyPtr = std::shared_ptr<const Policy>;

// In order of submission.
[[nodiscard]] PolicyPtr first_come();
// By PlannedRequest::priority, then in order of submission.
[[nodiscard]] PolicyPtr by_priority();
// The least remaining work first. A second of waiting counts like `aging` tokens less, so that no request waits for ever.
[[nodiscard]] PolicyPtr shortest_first(double aging = 20.0);
// The earliest Request::deadline first.
[[nodiscard]] PolicyPtr earliest_deadline();
// The tenant that has been served least first, counted in tokens times their prices over the tenant's weight. Sheng et al.,
// "Fairness in Serving Large Language Models" (OSDI 2024): the virtual token counter.
[[nodiscard]] PolicyPtr fair_by_tenant();
// Requests whose beginning is in the prefix index first, by the share of the prompt that the index saves. A second of waiting
// counts like a share of `aging`.
[[nodiscard]] PolicyPtr prefix_first(double aging = 0.1);

}  // namespace tessera
