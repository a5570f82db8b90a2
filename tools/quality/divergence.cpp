#include "divergence.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::quality {

namespace {

void log_probabilities(std::span<const float> logits, std::vector<double>& values) {
  const double maximum = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - maximum);
  const double shift = maximum + std::log(sum);
  values.resize(logits.size());
  std::ranges::transform(logits, values.begin(), [&](float x) { return static_cast<double>(x) - shift; });
}

}  // namespace

bool Divergence::add(std::span<const float> reference, std::span<const float> run, Token next) {
  const auto finite = [](float x) { return std::isfinite(x); };
  if (!std::ranges::all_of(reference, finite) || !std::ranges::all_of(run, finite)) return false;
  log_probabilities(reference, p_);
  log_probabilities(run, q_);
  double kl = 0.0;
  for (std::size_t i = 0; i < p_.size(); ++i) kl += std::exp(p_[i]) * (p_[i] - q_[i]);
  kl_ += kl;
  max_kl_ = std::max(max_kl_, kl);
  reference_loss_ -= p_[static_cast<std::size_t>(next)];
  loss_ -= q_[static_cast<std::size_t>(next)];
  const auto first_choice = [](std::span<const float> logits) {
    return std::ranges::max_element(logits) - logits.begin();
  };
  if (first_choice(reference) == first_choice(run)) ++agreeing_;
  ++rows_;
  return true;
}

double Divergence::mean_kl() const { return kl_ / static_cast<double>(rows_); }
double Divergence::reference_perplexity() const { return std::exp(reference_loss_ / static_cast<double>(rows_)); }
double Divergence::perplexity() const { return std::exp(loss_ / static_cast<double>(rows_)); }
double Divergence::same_first_choice() const { return static_cast<double>(agreeing_) / static_cast<double>(rows_); }

}  // namespace tessera::quality
