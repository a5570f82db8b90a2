// The surprise -ln q of each candidate (q: its probability), and the entropy of the distribution. Only one logarithm is computed, for the
// best candidate: another candidate's surprise is greater by the difference of the two logits.
#pragma once

#include <limits>

#include <tessera/extend/sampling/candidates.hpp>

#include "core/math.hpp"

namespace tessera::sampling::detail {

class Surprise {
 public:
  // Precondition: softmax() of the candidates has succeeded.
  explicit Surprise(const Candidates& candidates) noexcept : Surprise(candidates, candidates.best()) {}

  // Returns the surprise of a candidate with this logit, in nats.
  [[nodiscard]] double operator()(float logit) const noexcept {
    if (logit == top_) return top_surprise_;  // also if both are infinite
    return top_surprise_ + (static_cast<double>(top_) - static_cast<double>(logit));
  }
  [[nodiscard]] double entropy() const noexcept { return entropy_; }

 private:
  Surprise(const Candidates& candidates, const Candidate& best) noexcept
      : top_(best.logit), top_surprise_(-math::log(static_cast<double>(best.probability))) {
    for (const Candidate candidate : candidates.view()) {
      if (candidate.probability > 0.0f) entropy_ += static_cast<double>(candidate.probability) * (*this)(candidate.logit);
    }
  }

  float top_;
  double top_surprise_;
  double entropy_ = 0.0;
};

}  // namespace tessera::sampling::detail
