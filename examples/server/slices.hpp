// What the engine computes beside the scheduler's requests: texts to embed, prompts to score. It is computed in slices, each between two
// steps of the scheduler. While there are requests, a slice and the step before it take about --step-ms together: a slice has as
// many rows as fit by the measured times of the slices before. Without requests a slice has all the rows that are wanted.
#pragma once

#include <atomic>
#include <cstdint>

#include <tessera/batch.hpp>
#include <tessera/engine.hpp>
#include <tessera/extend/scheduler/cost_model.hpp>
#include <tessera/scheduler/scheduler.hpp>
#include <tessera/session.hpp>

namespace server {

// One thread at a time may ask for rows and compute (Workers::post_long); any thread may read the counts.
class Slices {
 public:
  // `step_seconds`: --step-ms.
  Slices(tessera::Scheduler& scheduler, double step_seconds) : scheduler_(scheduler), step_seconds_(step_seconds) {}

  // Rows of one sequence.
  struct Rows {
    std::size_t position = 0;  // tokens of the sequence that are computed
    std::size_t wanted = 0;    // rows that are left, 1 at least
    bool draws = false;        // the logits of each are wanted
  };
  // Returns how many of these rows the next slice is to have: 1 at least.
  [[nodiscard]] std::size_t next(const Rows& rows);
  // Computes a batch of the next of these rows, all of `session`, between two steps. Throws ApiError.
  [[nodiscard]] tessera::Outputs compute(const tessera::Engine& engine, const tessera::Session& session, const tessera::Batch& batch, const Rows& rows);

  [[nodiscard]] std::uint64_t slices() const noexcept { return slices_; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }

 private:
  [[nodiscard]] double seconds_left();

  tessera::Scheduler& scheduler_;
  double step_seconds_;
  tessera::CostModel costs_;     // of slices
  std::size_t widest_ = 0;       // rows of a slice so far
  std::uint64_t steps_ = 0;      // of the scheduler, when it was looked at last
  double steps_seconds_ = 0.0;   // what they took
  std::atomic<std::uint64_t> slices_ = 0, rows_ = 0;
};

}  // namespace server
