// Temperature: below 1 the distribution becomes sharper, above 1 flatter. Ackley, Hinton, Sejnowski, "A Learning Algorithm
// for Boltzmann Machines" (1985), section 2.
#pragma once

#include <string_view>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// Divides every logit by the temperature. 0 keeps only the best candidate.
struct Temperature {
  static constexpr std::string_view kName = "temperature";

  float temperature = 1.0f;  // >= 0, finite

  [[nodiscard]] Status check() const noexcept;
  [[nodiscard]] SampleStep step() const noexcept {
    return {.kind = SampleStepKind::temperature, .value = temperature};
  }
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

// A temperature that follows the entropy H of the distribution over n candidates: low + (high - low) * (H / ln n)^exponent. So it is `low`
// if one candidate has all the probability, and `high` if all candidates are equally likely. This is the "entropy" variant of kalomaze's
// dynamic temperature (koboldcpp; llama.cpp's temp_ext, where low = temp - range and high = temp + range).
struct DynamicTemperature {
  static constexpr std::string_view kName = "dynamic temperature";

  DynamicTemperatureOptions options;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
