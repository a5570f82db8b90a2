#include <tessera/extend/scheduler/cost_model.hpp>

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

constexpr double kFewRows = 16;
// Each term of the model is divided by its unit, so that all terms have about the same size.
constexpr std::array<double, 5> kUnits = {1, 8, kFewRows, 64, 32768};
constexpr double kForget = 0.995;   // factor of the weight of all earlier observations at each step: halved after 140 steps
// Weight of the guess of the costs with which the model begins; one observed step has the weight 1. The weight of the guess is small,
// because the guess may be wrong by a factor of 100, and a few observed steps must be enough to correct it.
constexpr double kGuess = 1e-6;
constexpr int kSweeps = 12;         // coordinate descent needs few sweeps, because it begins at the last solution
constexpr double kErrorMemory = 0.98;
constexpr std::size_t kMostDrawing = 512;  // limit of the numbers of rows whose drawing steps are timed separately
constexpr std::uint32_t kSure = 3;  // the time of a number of rows is known after this many measured steps

}  // namespace

CostModel::Terms CostModel::terms_of(const StepLoad& load) noexcept {
  const double rows = load.rows;
  Terms terms = {1, static_cast<double>(load.outputs), std::min(rows, kFewRows), std::max(rows - kFewRows, 0.0),
                 static_cast<double>(load.keys)};
  for (std::size_t i = 0; i < kTerms; ++i) terms[i] /= kUnits[i];
  return terms;
}

CostModel::CostModel(const Costs& guess)
    : costs_{guess.fixed, guess.output, guess.few_rows, guess.many_rows, guess.key}, drawing_(kMostDrawing, kSure) {
  for (std::size_t i = 0; i < kTerms; ++i) {
    costs_[i] = std::max(costs_[i], 0.0) * kUnits[i];
    const double scale = std::max(costs_[i], 1e-9);
    products_[i][i] = kGuess / (scale * scale);  // a deviation from the guess counts relative to the guess, like errors of observations
    targets_[i] = products_[i][i] * costs_[i];
  }
}

double CostModel::predict(const StepLoad& load) const noexcept {
  const Terms terms = terms_of(load);
  double seconds = 0;
  for (std::size_t i = 0; i < kTerms; ++i) seconds += terms[i] * costs_[i];
  return seconds;
}

std::optional<double> CostModel::drawing(const StepLoad& load) const noexcept {
  if (load.rows != load.outputs || !drawing_.measured(load.rows)) return std::nullopt;
  return drawing_.at(load.rows);
}

double CostModel::more(const StepLoad& before, const StepLoad& after) const noexcept {
  const std::optional<double> known = drawing(before);
  if (known && after.rows == after.outputs) return drawing_.at(after.rows) - *known;
  return predict(after) - predict(before);
}

void CostModel::observe(const StepLoad& load, double seconds) noexcept {
  if (!(seconds > 0.0) || !std::isfinite(seconds)) return;
  if (load.rows == load.outputs) drawing_.observe(load.rows, seconds);
  const double error = std::abs(predict(load) - seconds) / seconds;
  mean_error_ = observed_ == 0 ? error : kErrorMemory * mean_error_ + (1 - kErrorMemory) * error;
  ++observed_;
  const Terms terms = terms_of(load);
  // The error of an observation is divided by the time that the model expects, not by the measured time. If it were divided by the measured
  // time, steps that are fast by chance would weigh more than slow steps, and noise would make all costs too small. The expected time may
  // be far off, so it is limited to between half and twice the measured time.
  const double expected = std::clamp(predict(load), 0.5 * seconds, 2.0 * seconds);
  const double weight = 1.0 / (expected * expected);
  for (std::size_t i = 0; i < kTerms; ++i) {
    for (std::size_t j = 0; j < kTerms; ++j) products_[i][j] = kForget * products_[i][j] + weight * terms[i] * terms[j];
    targets_[i] = kForget * targets_[i] + weight * terms[i] * seconds;
  }
  solve();
}

// Computes the costs that fit the observed times best (least squares), where no cost is negative. Method: cyclic coordinate descent, which
// sets each cost in turn to its best value while the other costs are fixed.
void CostModel::solve() noexcept {
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < kTerms; ++i) {
      if (!(products_[i][i] > 0.0)) continue;
      double rest = targets_[i];
      for (std::size_t j = 0; j < kTerms; ++j) {
        if (j != i) rest -= products_[i][j] * costs_[j];
      }
      costs_[i] = std::max(rest / products_[i][i], 0.0);
    }
  }
}

CostModel::Costs CostModel::costs() const noexcept {
  return {.fixed = costs_[0] / kUnits[0],
          .output = costs_[1] / kUnits[1],
          .few_rows = costs_[2] / kUnits[2],
          .many_rows = costs_[3] / kUnits[3],
          .key = costs_[4] / kUnits[4]};
}

}  // namespace tessera
