// Computes texts to embed and prompts to score beside the requests that the scheduler serves. The work is cut into slices, each of which is
// computed between two steps of the scheduler. A slice has as many rows as fit if the slice and the step before it are to take no longer
// than --step-ms together. The measured times of earlier slices predict the time of a slice. Exceptions: a slice has 16 rows (kLeastRows)
// even if they do not fit; above 16 rows, it has at most twice the rows of the widest slice before; and it has at most 256 (kMostRows). If
// the scheduler has no requests, a slice has 256 rows, or all that are left.
#pragma once

#include <atomic>
#include <cstdint>

#include <tessera/batch.hpp>
#include <tessera/engine.hpp>
#include <tessera/extend/scheduler/cost_model.hpp>
#include <tessera/scheduler/scheduler.hpp>
#include <tessera/session.hpp>

namespace server {

// One thread at a time may call next() and compute(), as work of Workers::post_long() does; any thread may read the counts.
class Slices {
 public:
  // `step_seconds`: the time of --step-ms, in seconds.
  Slices(tessera::Scheduler& scheduler, double step_seconds) : scheduler_(scheduler), step_seconds_(step_seconds) {}

  // The rows of one sequence.
  struct Rows {
    std::size_t position = 0;  // tokens of the sequence that are computed already
    std::size_t wanted = 0;    // rows still to compute, at least 1
    bool draws = false;        // the logits of each row are wanted
  };
  // Returns how many of these rows to put into the next slice: at least 1.
  [[nodiscard]] std::size_t next(const Rows& rows);
  // Computes a batch of the next rows, all of `session`, between two steps. Throws ApiError.
  [[nodiscard]] tessera::Outputs compute(const tessera::Engine& engine, const tessera::Session& session, const tessera::Batch& batch, const Rows& rows);

  [[nodiscard]] std::uint64_t slices() const noexcept { return slices_; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }

 private:
  [[nodiscard]] double seconds_left();

  tessera::Scheduler& scheduler_;
  double step_seconds_;
  tessera::CostModel costs_;     // costs of slices
  std::size_t widest_ = 0;       // the most rows of a slice so far
  std::uint64_t steps_ = 0;      // number of the scheduler's steps, at the last call of seconds_left()
  double steps_seconds_ = 0.0;   // sum of the seconds of these steps
  std::atomic<std::uint64_t> slices_ = 0, rows_ = 0;
};

}  // namespace server
