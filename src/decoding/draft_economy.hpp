// Decides whether drafts pay, both for one generation (DraftLengths) and for a scheduler's steps of many requests (StepPlanner). There are
// two rules:
// - Drafts are made if they are expected to increase the tokens a second of the step by a margin (pays()).
// - Because expectations are not exact, a ledger adds up what drafts have really cost and gained. While drafts have lost
//   more than a small part of the time, no drafts are made (DraftLedger).
// DraftLengths and StepPlanner search for the best number of drafts in different ways. DraftLengths compares all numbers of drafts, because
// a step's time grows by jumps, and uses an acceptance rate for each position. StepPlanner adds drafts to many requests one by one, as long
// as the next draft pays, and uses one acceptance rate for all drafts of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::detail {

// Expected tokens of some work, and the seconds that the work takes.
struct Goodput {
  double tokens = 0.0, seconds = 0.0;
};

// Returns whether `a` has more than `factor` times the tokens a second of `b`.
[[nodiscard]] constexpr bool exceeds(const Goodput& a, const Goodput& b, double factor = 1.0) noexcept {
  return a.tokens * b.seconds > factor * a.seconds * b.tokens;
}

// Returns whether drafts pay. The arguments are a step with drafts and the same step without them, or a single draft and the step to which
// it is added.
[[nodiscard]] constexpr bool pays(const Goodput& drafts, const Goodput& without) noexcept {
  constexpr double kMargin = 1.05;  // because measured and predicted times are inexact
  return exceeds(drafts, without, kMargin);
}

// Limits the time that drafts may lose. Adds up how much longer (or shorter) steps with drafts took than steps without drafts would have
// taken for the same number of tokens. Some steps get no drafts, so that the time of a step without drafts is known.
class DraftLedger {
 public:
  struct Rules {
    std::size_t widths = 1;   // steps with this number of rows or more count as equally wide
    std::uint64_t plain = 2;  // number of first steps of each width that have no drafts
    double memory = 1.0;      // factor of the weight of all earlier steps, applied at each step
  };
  explicit DraftLedger(const Rules& rules) : rules_(rules), turns_(rules.widths + 1) {}

  // Returns whether the next step may have drafts. `rows`: the step's rows without drafts.
  [[nodiscard]] bool may_draft(std::size_t rows) noexcept;
  // Returns whether drafts may lose another `seconds`.
  [[nodiscard]] bool can_lose(double seconds) const noexcept;

  struct StepTimes {
    double seconds;  // time of the step, including making its drafts
    double without;  // time that steps without drafts would have taken for the same number of tokens
  };
  void observe(const StepTimes& step) noexcept;

 private:
  Rules rules_;
  std::vector<std::uint64_t> turns_;  // [rows]: number of may_draft() calls for steps of this width
  double spent_ = 0.0,
         lost_ = 0.0;  // seconds of observed steps, and seconds of these that drafts have lost (negative: gained)
};

}  // namespace tessera::detail
