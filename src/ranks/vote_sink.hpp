// The votes of a rank's heads: how much rows attend to each key. Token budgets choose the tokens to keep by these votes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/step/step_executor.hpp"
#include "ranks/step_bytes.hpp"

namespace tessera::detail {

// The sink of a rank other than 0. It takes no outputs, because rank 0 hands out the outputs. It keeps the votes of the rank's heads.
class VoteSink final : public OutputSink {
 public:
  // Begins a step, which must live until add_to(). May throw bad_alloc.
  void begin(const StepDescription& step);
  std::span<float> destination(std::size_t) override { return {}; }
  void done(std::size_t) override {}
  std::span<std::uint64_t> votes(std::size_t row) override { return sums_[step_->rows[row].sequence]; }
  // Adds the votes to those of rank 0. Votes are integers, so the order of ranks does not matter.
  void add_to(OutputSink& sink) const;
  // Returns whether a row of the step votes.
  [[nodiscard]] bool any() const noexcept;
  // Send votes between ranks: write() writes this rank's votes as bytes. read() replaces the votes in this object by those of another rank.
  // Returns false if the bytes are not votes of the step.
  void write(ByteWriter& to) const;
  [[nodiscard]] bool read(ByteReader& from);

 private:
  const StepDescription* step_ = nullptr;
  std::vector<std::vector<std::uint64_t>> sums_;  // [sequence]
};

}  // namespace tessera::detail
