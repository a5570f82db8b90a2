// Which request comes next, and which one gives way: two pure functions of plain numbers. A host can write its own.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

namespace tessera {

// A request as plans see it.
struct PlannedRequest {
  std::uint64_t id = 0;
  std::uint64_t order = 0;             // of submission, from 0: what decides between equal ranks
  std::int32_t priority = 0;           // lower comes first
  double submitted = 0.0;              // seconds, of the scheduler's clock
  double deadline = std::numeric_limits<double>::infinity();  // likewise; of its last token
  double tenant_service = 0.0;         // what its tenant has had, weighted (fair_by_tenant)
  std::uint64_t prompt = 0;            // tokens
  std::uint64_t drawn = 0;             // tokens drawn so far: they follow the prompt
  std::uint64_t expected = 0;          // tokens drawn in all: max_tokens, or what is to be expected
  std::uint64_t computed = 0;          // of prompt and drawn tokens, those whose keys and values are there
  std::uint64_t dropped = 0;           // of them, those that are gone again: a stream's, or beyond a budget of tokens
  std::uint64_t budget = 0;            // tokens at which a drop comes, once its prompt is computed; 0: all are kept
  // Bytes of pages that its next drop takes beside those of the rows before it: copies of pages that it shares, pages that a window
  // has passed, and what is to be set aside for it from then on.
  std::uint64_t drop_bytes = 0;
  std::uint64_t copy_bytes = 0;        // of copies that its next row makes: a page that it shares and that is not full
  // Some of its tokens have been dropped, so that it could not be computed again: the request never gives its pages up, and the
  // pages that it needs until its end are set aside.
  bool keeps_pages = false;
  bool keeps_windows = false;          // its windows give no pages back
  std::uint64_t saved = 0;             // of a waiting one: of those that are not, what the prefix index has
  std::uint64_t held = 0;              // bytes of pages that it alone holds: free if it gives way
  std::uint64_t shared = 0;            // of a waiting one: bytes of its beginning's pages that running requests hold anyway
  // Of a waiting one: the order of a request that computes its beginning. In steps in which that one has rows this one waits
  // for it.
  std::uint64_t awaits = kNobody;
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  // Of one that decodes and has a drafter: drafts that it may have in a step; the chance that one of them is right if those
  // before it were (infinite: all are wanted, whether they pay or not); seconds that one takes to make.
  std::uint32_t drafts = 0;
  std::uint32_t branches = 0;          // chains that may branch off its drafts, each for a page of each group
  double draft_chance = 0.0, draft_seconds = 0.0;
  // Beams: sequences that it follows at once, a row each when it decodes, and `drawn` counts tokens of each; and the bytes of
  // pages that its next step then takes, of several sequences that share some.
  std::uint32_t beams = 1;
  std::uint64_t next_bytes = 0;
  bool suspended = false;              // of a waiting one: its `computed` tokens are in the file, and come back whole

  // Rows until the next token is drawn: 1 of one that decodes (of each of its beams).
  [[nodiscard]] std::uint64_t needed() const noexcept { return prompt + drawn - computed; }
  // Rows until it has ended, as far as one can tell.
  [[nodiscard]] std::uint64_t remaining() const noexcept {
    const std::uint64_t more = expected > drawn ? expected - drawn - 1 : 0;  // the last token drawn is not computed
    return needed() - saved + more;
  }
};

class Policy {
 public:
  virtual ~Policy() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  // The lowest is served first, equal ones in order of submission.
  [[nodiscard]] virtual double rank(const PlannedRequest& request, double now) const noexcept = 0;
  // Of the running requests behind the one that needs pages, the lowest gives way. Default: the work that is lost for
  // each byte that it frees.
  [[nodiscard]] virtual double loss(const PlannedRequest& request, double now) const noexcept;
};
using PolicyPtr = std::shared_ptr<const Policy>;

[[nodiscard]] PolicyPtr first_come();
// PlannedRequest::priority, then as they come.
[[nodiscard]] PolicyPtr by_priority();
// Least work left first. A second of waiting counts like `aging` tokens less, so that none waits for ever.
[[nodiscard]] PolicyPtr shortest_first(double aging = 20.0);
[[nodiscard]] PolicyPtr earliest_deadline();
// The tenant that has been served least, in tokens times their prices over its weight. Sheng et al., "Fairness in Serving
// Large Language Models" (OSDI 2024): the virtual token counter.
[[nodiscard]] PolicyPtr fair_by_tenant();
// Those whose beginning is in the prefix index first, by the share of the prompt that it saves; a second of waiting
// counts like `aging` of the prompt.
[[nodiscard]] PolicyPtr prefix_first(double aging = 0.1);

}  // namespace tessera
