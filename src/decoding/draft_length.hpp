// Chooses how many tokens to draft in a step, by goodput: the number k with the most tokens a second,
//
//   (1 + a1 + a1 a2 + ... + a1...ak) / (seconds of drafting k + seconds of a step of k + 1 rows),
//
// where ai is the share of the i-th drafts that were accepted, out of the i-th drafts behind accepted ones. Shares and seconds are
// measured as the request goes on. If drafts do not pay, k is 0. From time to time another number is tried, to learn whether k is still
// the best. Nothing is tried while drafts have lost more than a small share of the time so far, compared with steps without drafts. So a
// text is never much slower than without drafts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/extend/decoding/measured_costs.hpp>

namespace tessera::detail {

class DraftLengths {
 public:
  explicit DraftLengths(std::size_t most);

  // Returns how many drafts to ask for, at most `room`. `guess(n)`: the drafter's own estimate of the seconds that n drafts take,
  // used until these seconds have been measured.
  template <class Guess>
  [[nodiscard]] std::size_t choose(std::size_t room, const Guess& guess) noexcept {
    return explored(room, best(room, [&](std::size_t n) { return drafting_.measured() ? drafting_.at(n) : guess(n); }));
  }
  // Returns how many of the `drafts` proposed drafts go into the step.
  [[nodiscard]] std::size_t keep(std::size_t drafts) const noexcept {
    return exploring_ ? drafts : best(drafts, [](std::size_t) { return 0.0; });
  }

  void observe_drafting(std::size_t drafts, double seconds) noexcept {
    drafting_.observe(drafts, seconds);
    cycle_ += drafting_.at(drafts);
  }
  // Counts the first drafts, which took longer than later ones will, because the drafter read the prompt. `seconds`: the time of the
  // drafts alone, without the prompt.
  void charge(double seconds) noexcept { cycle_ += seconds; }
  void observe_step(std::size_t rows, double seconds) noexcept;
  void observe_accepted(std::size_t drafts, std::size_t accepted) noexcept;

  // Returns the probability that a draft is accepted if the drafts before it were, for a caller that chooses the number itself.
  // From time to time returns the initial guess if that is higher, so that drafts are tried again.
  [[nodiscard]] double chance() noexcept;
  // Returns the most drafts of a step: few, until some have been accepted.
  [[nodiscard]] std::size_t trusted() const noexcept { return trusted_; }
  [[nodiscard]] bool knows_drafting() const noexcept { return drafting_.measured(); }
  [[nodiscard]] double drafting(std::size_t drafts) const noexcept { return drafting_.at(drafts); }

  // Returns the expected number of tokens of a step with k drafts.
  [[nodiscard]] double expected(std::size_t k) const noexcept;

 private:
  static constexpr double kMargin = 1.05;  // factor by which drafts must be better than none, because measures are not exact

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
    double tried = 0.0, right = 0.0;  // drafts tried and accepted; older drafts count less
  };
  std::vector<Position> positions_;  // [most]
  Position all_;                     // all positions together
  MeasuredCosts steps_, drafting_;   // seconds of a step, by its rows; seconds of drafting, by the drafts
  std::uint64_t chosen_ = 0;         // calls of choose() or chance()
  // While drafts do not pay: the number of the call that tries drafts again, and the number of calls between two tries.
  std::uint64_t next_probe_, probe_after_;
  bool exploring_ = false;
  std::size_t trusted_;
  // Sums of seconds. A step counts with the measured cost of its number of rows and not with its own time, because other work of the
  // machine, which may slow down a single step, is not the drafts' fault.
  double cycle_ = 0.0;         // seconds of the present step and its drafts
  double spent_ = 0.0;         // seconds of all steps and drafts
  double lost_ = 0.0;          // seconds of spent_ that the same tokens would not have taken without drafts; negative: drafts gained time
};

}  // namespace tessera::detail
