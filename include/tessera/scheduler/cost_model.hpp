// How long a step takes, learnt while steps run. A step's time is a sum of costs that are not negative:
//
//   seconds = fixed + outputs * head + rows up to 16 * few + rows beyond 16 * many + keys * attention
//
// Up to 16 rows the weights' bytes are what takes time, beyond them the arithmetic; `keys` is how many keys and values
// the rows attend to in all. The costs are those of least squares of the relative error, older steps counting less.
//
// Whether a draft pays hangs on what a few rows more take, for which such a sum is too coarse: kernels change with the number
// of rows. So the times of steps in which every row draws are kept by their rows too (drawing(), more()).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tessera/decoding/measured_costs.hpp>

namespace tessera {

// What a step consists of.
struct StepLoad {
  std::uint32_t rows = 0;
  std::uint32_t outputs = 0;  // rows of which logits or a token are wanted
  std::uint64_t keys = 0;     // the sum over the rows of the keys that each sees
};

class CostModel {
 public:
  // Seconds; of a model that nobody has measured yet, until observe() knows better.
  struct Costs {
    double fixed = 2e-3, output = 1e-4, few_rows = 1e-4, many_rows = 2e-3, key = 1e-8;
  };
  CostModel() : CostModel(Costs{}) {}
  explicit CostModel(const Costs& guess);

  [[nodiscard]] double predict(const StepLoad& load) const noexcept;
  // Seconds of a step of this load, as measured, if every row of it draws and there were some of as many rows.
  [[nodiscard]] std::optional<double> drawing(const StepLoad& load) const noexcept;
  // Seconds by which `after` takes longer than `before`, if every row draws in both as measured, once steps of as many rows as
  // `before` were. What is wider than any of them is taken for free then, so that it is tried.
  [[nodiscard]] double more(const StepLoad& before, const StepLoad& after) const noexcept;
  // A step of this load took that long. Times that are not positive and finite are ignored.
  void observe(const StepLoad& load, double seconds) noexcept;

  [[nodiscard]] Costs costs() const noexcept;
  [[nodiscard]] std::uint64_t observed() const noexcept { return observed_; }
  // The mean of |predicted - measured| / measured over the newest steps, as predicted before they were learnt from.
  [[nodiscard]] double mean_error() const noexcept { return mean_error_; }

 private:
  static constexpr std::size_t kTerms = 5;
  using Terms = std::array<double, kTerms>;
  static Terms terms_of(const StepLoad& load) noexcept;
  void solve() noexcept;

  Terms costs_{};                      // of a unit of each term (terms_of)
  std::array<Terms, kTerms> products_{};  // sums of term times term, weighted
  Terms targets_{};                    // sums of term times seconds, weighted
  MeasuredCosts drawing_;              // of steps in which every row draws, by rows
  std::uint64_t observed_ = 0;
  double mean_error_ = 0.0;
};

}  // namespace tessera
