// The surprise -ln p of candidates and the entropy of their distribution, from logits. Computes a single logarithm instead
// of one per candidate.
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
