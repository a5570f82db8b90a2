// How many tokens to draft, by goodput: the number k with the most tokens a second,
//
//   (1 + a1 + a1 a2 + ... + a1...ak) / (seconds of drafting k + seconds of a step of k + 1 rows),
//
// where ai is how often the i-th draft was right when those before it were. Everything is measured as the request goes
// on, so that 0 is found where drafts do not pay. Now and then it does otherwise, to learn whether that still holds. What
// drafts have lost so far, against steps without, bounds what may be tried: a text is never much slower than without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/extend/decoding/measured_costs.hpp>

namespace tessera::detail {

class DraftLengths {
 public:
  explicit DraftLengths(std::size_t most);

  // Before there are drafts: at most `room`. `guess(n)`: what the drafter says of its cost until that is measured.
  template <class Guess>
  [[nodiscard]] std::size_t choose(std::size_t room, const Guess& guess) noexcept {
    return explored(room, best(room, [&](std::size_t n) { return drafting_.measured() ? drafting_.at(n) : guess(n); }));
  }
  // Of `drafts` that are there: how many of them go into the step. At most as many as were wanted.
  [[nodiscard]] std::size_t keep(std::size_t drafts) const noexcept {
    return exploring_ ? drafts : best(drafts, [](std::size_t) { return 0.0; });
  }

  void observe_drafting(std::size_t drafts, double seconds) noexcept {
    drafting_.observe(drafts, seconds);
    cycle_ += drafting_.at(drafts);
  }
  // Of drafts that took longer than others will (a prompt was read): what they cost without that.
  void charge(double seconds) noexcept { cycle_ += seconds; }
  void observe_step(std::size_t rows, double seconds) noexcept;
  void observe_accepted(std::size_t drafts, std::size_t accepted) noexcept;

  // For who chooses otherwise: the chance that a draft is right if those before it were. Now and
  // then it is what is assumed in the beginning, if that is more: so that drafts are tried again.
  [[nodiscard]] double chance() noexcept;
  // Drafts of a step at most: few, until some have been right.
  [[nodiscard]] std::size_t trusted() const noexcept { return trusted_; }
  [[nodiscard]] bool knows_drafting() const noexcept { return drafting_.measured(); }
  [[nodiscard]] double drafting(std::size_t drafts) const noexcept { return drafting_.at(drafts); }

  // Tokens that a step with k drafts is expected to give.
  [[nodiscard]] double expected(std::size_t k) const noexcept;

 private:
  static constexpr double kMargin = 1.05;  // drafts are to be better than none by this much: measures are not exact

  template <class Cost>
  [[nodiscard]] std::size_t best(std::size_t room, const Cost& drafting) const noexcept {
    std::size_t best = 0;
    double most = 0.0;
    for (std::size_t k = 0; k <= room; ++k) {
      const double seconds = (k > 0 ? drafting(k) : 0.0) + steps_.at(k + 1);
      const double rate = seconds > 0.0 ? expected(k) / seconds : expected(k);
      if (rate <= most) continue;
      most = k == 0 ? kMargin * rate : rate;
      best = k;
    }
    return best;
  }
  std::size_t explored(std::size_t room, std::size_t best) noexcept;

  struct Position {
    double tried = 0.0, right = 0.0;  // older ones count less
  };
  std::vector<Position> positions_;  // [most]
  Position all_;                     // of all together
  MeasuredCosts steps_, drafting_;   // by rows, by drafts
  std::uint64_t chosen_ = 0;         // times
  std::uint64_t next_probe_, probe_after_;  // while none pay: when to try again
  bool exploring_ = false;
  std::size_t trusted_;
  // Seconds, as known of such a width: what else the machine does is not the drafts' fault.
  double cycle_ = 0.0;         // of the present step and its drafts
  double spent_ = 0.0;         // of all
  double lost_ = 0.0;          // of them: more than steps without drafts would have taken; negative: gained
};

}  // namespace tessera::detail
