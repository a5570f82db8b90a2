// Predicts how long a step takes, and learns while steps run. A step's time is a sum of costs that are not negative:
//
//   seconds = fixed + output * outputs + few_rows * min(rows, 16) + many_rows * max(rows - 16, 0) + key * keys
//
// fixed, output, few_rows, many_rows and key are the costs (CostModel::Costs); outputs, rows and keys describe the step (StepLoad). Up to
// 16 rows, reading the weights takes most of the time; beyond 16 rows, the arithmetic does. The costs are fitted by least squares of the
// relative error; older steps count less.
//
// This sum is too coarse to decide whether a draft pays. The decision depends on the time of a few more rows, and this time can jump,
// because different numbers of rows are computed by different kernels. So the times of drawing steps (steps in which every row draws a
// token) are also stored by number of rows: drawing(), more().
//
//   tessera::CostModel model;
//   model.observe({.rows = 1, .outputs = 1, .keys = 500}, 0.021);
//   const double seconds = model.predict({.rows = 8, .outputs = 8, .keys = 4000});
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tessera/extend/decoding/measured_costs.hpp>

namespace tessera {

// The work of a step.
struct StepLoad {
  std::uint32_t rows = 0;
  std::uint32_t outputs = 0;  // number of rows whose logits or token are needed
  std::uint64_t keys = 0;     // keys that the rows see, summed over the rows
};

class CostModel {
 public:
  // Seconds of a step, an output, one of the first 16 rows, a further row, and a key. The defaults are a guess for a model that was not
  // measured; observe() improves it.
  struct Costs {
    double fixed = 2e-3, output = 1e-4, few_rows = 1e-4, many_rows = 2e-3, key = 1e-8;
  };
  CostModel() : CostModel(Costs{}) {}
  explicit CostModel(const Costs& guess);

  [[nodiscard]] double predict(const StepLoad& load) const noexcept;
  // Returns the measured seconds of a step of this load. Returns nullopt if a row of the step draws no token, or if no step with this
  // number of rows has been measured.
  [[nodiscard]] std::optional<double> drawing(const StepLoad& load) const noexcept;
  // Returns by how many seconds a step `after` takes longer than a step `before`. If every row draws in both steps, and steps of
  // before.rows rows were measured: uses the measured times. Rows beyond the widest measured step then cost nothing, so that wider steps
  // are tried. Otherwise: predict(after) - predict(before).
  [[nodiscard]] double more(const StepLoad& before, const StepLoad& after) const noexcept;
  // Learns that a step of this load took `seconds`. Ignores times that are not positive and finite.
  void observe(const StepLoad& load, double seconds) noexcept;

  [[nodiscard]] Costs costs() const noexcept;
  [[nodiscard]] std::uint64_t observed() const noexcept { return observed_; }
  // Returns the mean of |predicted - measured| / measured over the newest steps. Each prediction was made before the model learned from the
  // step.
  [[nodiscard]] double mean_error() const noexcept { return mean_error_; }

 private:
  static constexpr std::size_t kTerms = 5;
  using Terms = std::array<double, kTerms>;
  static Terms terms_of(const StepLoad& load) noexcept;
  void solve() noexcept;

  Terms costs_{};                      // seconds of a unit of each term (terms_of)
  std::array<Terms, kTerms> products_{};  // [i][j]: weighted sum over the steps of term i times term j
  Terms targets_{};                    // [i]: weighted sum over the steps of term i times seconds
  MeasuredCosts drawing_;              // seconds of steps in which every row draws a token, by number of rows
  std::uint64_t observed_ = 0;
  double mean_error_ = 0.0;
};

}  // namespace tessera
