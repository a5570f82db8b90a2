// Votes of a rank's heads: what rows attend to, for token budgets that choose by it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/step/step_executor.hpp"
#include "ranks/step_bytes.hpp"

namespace tessera::detail {

// The sink of a rank other than 0: takes no outputs, because rank 0 hands them out, and keeps the votes of the rank's heads.
class VoteSink final : public OutputSink {
 public:
  // Begins a step, which must live until add_to(). May throw bad_alloc.
  void begin(const StepDescription& step);
  std::span<float> destination(std::size_t) override { return {}; }
  void done(std::size_t) override {}
  std::span<std::uint64_t> votes(std::size_t row) override { return sums_[step_->rows[row].sequence]; }
  // Adds the votes to rank 0's. They are integers, so the order does not matter.
  void add_to(OutputSink& sink) const;
  // Returns whether a row of the step votes.
  [[nodiscard]] bool any() const noexcept;
  // Writes the votes, and reads those of another rank in the place of its own. read() returns false if the bytes are not the step's votes.
  void write(ByteWriter& to) const;
  [[nodiscard]] bool read(ByteReader& from);

 private:
  const StepDescription* step_ = nullptr;
  std::vector<std::vector<std::uint64_t>> sums_;  // [sequence]
};

}  // namespace tessera::detail
