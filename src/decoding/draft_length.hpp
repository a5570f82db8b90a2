// Chooses the number of drafts of a step by goodput: the number k with the most expected tokens a second,
//
//   (1 + a1 + a1 a2 + ... + a1...ak) / (seconds to draft k tokens + seconds of a step of k + 1 rows),
//
// where ai is the acceptance rate of the i-th draft: the share of steps in which it was accepted, among those in which all drafts before it
// were accepted. Rates and seconds are measured while the request runs. If drafts do not pay, k is 0. From time to time another number is
// tried, to find out whether k is still the best. Exception: no other number is tried while drafts have lost more than a small part of the
// request's time, compared with steps without drafts. So a request never takes much longer than without drafts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/extend/decoding/measured_costs.hpp>

#include "decoding/draft_economy.hpp"

namespace tessera::detail {

class DraftLengths {
 public:
  explicit DraftLengths(std::size_t most);

  // Returns how many drafts the drafter should make, at most `room`. `guess(n)` returns the drafter's own estimate of the seconds for n
  // drafts, which is used until these seconds have been measured.
  template <class Guess>
  [[nodiscard]] std::size_t choose(std::size_t room, const Guess& guess) noexcept {
    return explored(room, best(room, [&](std::size_t n) { return drafting_.measured() ? drafting_.at(n) : guess(n); }));
  }
  // Returns how many of the drafter's `drafts` drafts the step should compute.
  [[nodiscard]] std::size_t keep(std::size_t drafts) const noexcept {
    return exploring_ ? drafts : best(drafts, [](std::size_t) { return 0.0; });
  }

  void observe_drafting(std::size_t drafts, double seconds) noexcept {
    drafting_.observe(drafts, seconds);
    cycle_ += drafting_.at(drafts);
  }
  // Adds `seconds` to the time of the present step: the time that the drafter took for a request's first drafts, without the time for
  // reading the prompt. For later drafts call observe_drafting(), which also learns the drafter's usual time. The time of the first drafts
  // is not usual, because the drafter then reads the prompt too.
  void charge(double seconds) noexcept { cycle_ += seconds; }
  void observe_step(std::size_t rows, double seconds) noexcept;
  void observe_accepted(std::size_t drafts, std::size_t accepted) noexcept;

  // Returns the probability that a draft is accepted if all drafts before it were, for a caller that decides the number of drafts itself.
  // From time to time returns the initial estimate instead, if that is higher, so that drafts are tried again.
  [[nodiscard]] double chance() noexcept;
  // Returns the largest number of drafts that a step may have: small, until some drafts have been accepted.
  [[nodiscard]] std::size_t trusted() const noexcept { return trusted_; }
  [[nodiscard]] bool knows_drafting() const noexcept { return drafting_.measured(); }
  [[nodiscard]] double drafting(std::size_t drafts) const noexcept { return drafting_.at(drafts); }

  // Returns the expected number of tokens of a step with k drafts.
  [[nodiscard]] double expected(std::size_t k) const noexcept;

 private:
  template <class Cost>
  [[nodiscard]] std::size_t best(std::size_t room, const Cost& drafting) const noexcept {
    const auto with = [&](std::size_t k) {
      return Goodput{.tokens = expected(k), .seconds = (k > 0 ? drafting(k) : 0.0) + steps_.at(k + 1)};
    };
    std::size_t best = 0;
    Goodput most;
    for (std::size_t k = 1; k <= room; ++k) {
      const Goodput one = with(k);
      if (best != 0 && !exceeds(one, most)) continue;
      most = one;
      best = k;
    }
    return pays(most, with(0)) ? best : 0;
  }
  // Tells the ledger that the present step and its drafts have produced `tokens` tokens.
  void end_cycle(std::size_t tokens) noexcept;
  std::size_t explored(std::size_t room, std::size_t best) noexcept;

  struct Position {
    double tried = 0.0, right = 0.0;  // numbers of tried and of accepted drafts; older drafts weigh less
  };
  std::vector<Position> positions_;  // [largest number of drafts]
  Position all_;                     // the counts of all positions together
  MeasuredCosts steps_, drafting_;   // seconds of a step, by its number of rows; seconds of drafting, by the number of drafts
  std::uint64_t chosen_ = 0;         // number of calls of choose() or chance()
  // If drafts do not pay: the value of chosen_ at which drafts are tried again, and the number of calls until the try after that.
  std::uint64_t next_probe_, probe_after_;
  bool exploring_ = false;
  std::size_t trusted_;
  // Seconds of the present step and of making its drafts. For the step, this is the usual time of a step with this number of rows, because
  // other work of the machine may have slowed this step down.
  double cycle_ = 0.0;
  DraftLedger ledger_{{}};
};

}  // namespace tessera::detail
