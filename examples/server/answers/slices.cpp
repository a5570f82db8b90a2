#include "answers/slices.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "api_error.hpp"

namespace server {

namespace {

constexpr std::size_t kMostRows = 256;
// Up to this number of rows, reading the weights takes most of a step's time, so these rows take hardly longer than one row.
constexpr std::size_t kLeastRows = 16;
// The share of --step-ms that a slice gets even if the scheduler's steps take the whole time.
constexpr double kLeastShare = 0.25;

tessera::StepLoad load_of(const Slices::Rows& rows, std::size_t n) {
  return {.rows = static_cast<std::uint32_t>(n), .outputs = rows.draws ? static_cast<std::uint32_t>(n) : 0, .keys = n * rows.position + n * (n + 1) / 2};
}

}  // namespace

// Returns the seconds that the next slice may take: --step-ms less the mean time of the scheduler's steps since the last call, but at least
// the share kLeastShare of --step-ms.
double Slices::seconds_left() {
  const tessera::Histogram steps = scheduler_.figures().step;
  const std::uint64_t count = steps.count() - std::exchange(steps_, steps.count());
  const double seconds = steps.sum() - std::exchange(steps_seconds_, steps.sum());
  const double step = count == 0 ? 0.0 : seconds / static_cast<double>(count);
  return std::max(step_seconds_ - step, step_seconds_ * kLeastShare);
}

std::size_t Slices::next(const Rows& rows) {
  const std::size_t most = std::min(rows.wanted, kMostRows), least = std::min(most, kLeastRows);
  if (scheduler_.idle()) return most;
  const double seconds = seconds_left();
  // At most twice the rows of the widest slice so far, because no wider slice was measured.
  std::size_t low = least, high = std::max(least, std::min(most, 2 * widest_));
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (costs_.predict(load_of(rows, middle)) <= seconds) low = middle;
    else high = middle - 1;
  }
  return low;
}

tessera::Outputs Slices::compute(const tessera::Engine& engine, const tessera::Session& session, const tessera::Batch& batch, const Rows& rows) {
  using Clock = std::chrono::steady_clock;
  const std::size_t n = batch.entries().size(), reused = session.reused();
  std::optional<tessera::Result<tessera::Outputs>> outputs;
  double seconds = 0.0;
  value_or_refuse(scheduler_.between_steps([&] {
    const auto begin = Clock::now();
    outputs = engine.forward(batch);
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }));
  tessera::Outputs taken = value_or_refuse(*std::move(outputs));
  if (session.reused() == reused) {  // otherwise some rows were reused, not computed, and the time is no measure
    costs_.observe(load_of(rows, n), seconds);
    widest_ = std::max(widest_, n);
  }
  ++slices_;
  rows_ += n;
  return taken;
}

}  // namespace server
