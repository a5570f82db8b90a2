// Decides whether drafts pay, for one generation (DraftLengths) and for a scheduler's steps of many requests
// (StepPlanner) alike. There are two rules:
// - drafts are made if they are expected to give more tokens a second than the step without them, by a margin (pays());
// - because expectations are not exact, a ledger adds up what drafts have really cost and given. While drafts have lost
//   more than a small part of the time, none are made (DraftLedger).
// The search for the best number of drafts differs. One generation compares all numbers of drafts, because a step's time grows by jumps; a
// scheduler gives drafts to many requests one by one, each with the chance of its own request, as long as the next
// draft pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::detail {

// Tokens that work is expected to give, and the seconds that it takes.
struct Goodput {
  double tokens = 0.0, seconds = 0.0;
};

// Returns whether `a` gives more tokens a second than `factor` times as many as `b` gives.
[[nodiscard]] constexpr bool exceeds(const Goodput& a, const Goodput& b, double factor = 1.0) noexcept {
  return a.tokens * b.seconds > factor * a.seconds * b.tokens;
}

// Returns whether drafts pay: a step with the drafts against the step without them, or a draft alone against the step
// it is added to.
[[nodiscard]] constexpr bool pays(const Goodput& drafts, const Goodput& without) noexcept {
  constexpr double kMargin = 1.05;  // because measured and predicted times are not exact
  return exceeds(drafts, without, kMargin);
}

// Limits the time that drafts may lose: adds up how much longer (or shorter) steps with drafts took than the same
// tokens would have taken without. Some steps get no drafts, so that the time of a step without drafts is known.
class DraftLedger {
 public:
  struct Rules {
    std::size_t widths = 1;   // the number of rows from which on all steps count as equally wide
    std::uint64_t plain = 2;  // how many steps of each width have no drafts at first
    double memory = 1.0;      // the weight of all earlier steps is multiplied by this at each step
  };
  explicit DraftLedger(const Rules& rules) : rules_(rules), turns_(rules.widths + 1) {}

  // Returns whether the next step, which has `rows` rows without drafts, may have drafts as well.
  [[nodiscard]] bool may_draft(std::size_t rows) noexcept;
  // Returns whether drafts may still lose `seconds` more.
  [[nodiscard]] bool can_lose(double seconds) const noexcept;

  struct StepTimes {
    double seconds;  // time that the step and its drafts took
    double without;  // time that the same number of tokens would have taken without drafts
  };
  void observe(const StepTimes& step) noexcept;

 private:
  Rules rules_;
  std::vector<std::uint64_t> turns_;  // [rows]: how often may_draft() was called for steps of this width
  double spent_ = 0.0,
         lost_ = 0.0;  // seconds of observed steps, and how many of them drafts have lost; negative: gained
};

}  // namespace tessera::detail
