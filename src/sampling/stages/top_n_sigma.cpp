#include "sampling/stages/top_n_sigma.hpp"

#include "sampling/range.hpp"

namespace tessera::sampling {
namespace {

// Returns the square root of x; 0 if x is not positive. Computes it by Newton's iteration from above, which stops when the value no longer
// falls. std::sqrt is not used, so that the bits are the same on every machine.
double square_root(double x) noexcept {
  if (!(x > 0.0)) return 0.0;
  double root = x > 1.0 ? x : 1.0;
  while (true) {
    const double next = 0.5 * (root + x / root);
    if (!(next < root)) return root;
    root = next;
  }
}

}  // namespace

Status TopNSigma::check() const noexcept {
  return detail::require(n > 0.0f && detail::finite(n), "top-n-sigma", n, "a number above 0");
}

void TopNSigma::operator()(Candidates& candidates, const Context&) const noexcept {
  double sum = 0.0;
  double count = 0.0;
  for (const float logit : candidates.logits()) {
    if (!detail::finite(logit)) continue;
    sum += static_cast<double>(logit);
    count += 1.0;
  }
  if (count == 0.0) return;
  const double mean = sum / count;
  double squares = 0.0;
  for (const float logit : candidates.logits()) {
    if (!detail::finite(logit)) continue;
    const double distance = static_cast<double>(logit) - mean;
    squares += distance * distance;
  }
  const double sigma = square_root(squares / count);
  const double threshold = static_cast<double>(candidates.best().logit) - static_cast<double>(n) * sigma;
  candidates.keep_from(threshold);
}

}  // namespace tessera::sampling
