#include "sampling/stages/temperature.hpp"

#include "sampling/range.hpp"
#include "sampling/surprise.hpp"

namespace tessera::sampling {
namespace {

void scale(Candidates& candidates, float temperature) noexcept {
  if (temperature == 0.0f) return candidates.keep_best(1);
  // If the best logit / temperature overflows, different logits would become equal (infinite). To prevent this, all logits are first
  // shifted so that the best is 0. A shift changes no probability.
  const float top = candidates.best().logit;
  const float shift = detail::finite(top) && !detail::finite(top / temperature) ? top : 0.0f;
  candidates.divide_logits(shift, temperature);
}

}  // namespace

Status Temperature::check() const noexcept {
  return detail::require(temperature >= 0.0f && detail::finite(temperature), "temperature", temperature,
                         "a number of at least 0");
}

void Temperature::operator()(Candidates& candidates, const Context&) const noexcept {
  if (temperature != 1.0f) scale(candidates, temperature);
}

Status DynamicTemperature::check() const noexcept {
  const auto& [low, high, exponent] = options;
  TESSERA_TRY_STATUS(detail::require(low >= 0.0f && detail::finite(low), "dynamic temperature: low", low,
                                     "a number of at least 0"));
  TESSERA_TRY_STATUS(detail::require(high >= low && detail::finite(high), "dynamic temperature: high", high,
                                     "a number of at least low"));
  return detail::require(exponent > 0.0f && detail::finite(exponent), "dynamic temperature: exponent", exponent,
                         "a number above 0");
}

void DynamicTemperature::operator()(Candidates& candidates, const Context&) const noexcept {
  if (candidates.size() < 2 || !candidates.softmax()) return;
  const double entropy = detail::Surprise(candidates).entropy();
  double share = entropy / math::log(static_cast<double>(candidates.size()));
  share = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
  const double low = static_cast<double>(options.low);
  const double way = math::pow(share, static_cast<double>(options.exponent));
  scale(candidates, static_cast<float>(low + (static_cast<double>(options.high) - low) * way));
}

}  // namespace tessera::sampling
