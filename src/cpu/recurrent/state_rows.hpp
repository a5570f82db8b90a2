// Finds the memory of one recurrent layer's states for a step: for each run of consecutive rows of a sequence, the state before its first
// row; for each row, the place to which the state after the row is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"

namespace tessera::cpu {

class StateRows {
 public:
  // Consecutive rows of one sequence.
  struct Run {
    std::size_t first, count;
    const float* before;  // the state before the first row; nullptr: zeros
  };

  void reserve(std::size_t rows) {
    runs_.reserve(rows);
    after_.reserve(rows);
  }
  // Finds the states of `layer` for the rows. `offset`: floats from the start of the layer's state to the part that the
  // caller computes: 0 for the convolution's inputs, which come first; Recurrence::state_offset for the heads' states.
  // Precondition: at most as many rows as are reserved.
  void find(std::span<const backend::RowTable> rows, std::span<const KvView> sequences, std::uint32_t layer,
            std::uint64_t offset) noexcept {
    runs_.clear();
    after_.clear();
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const backend::RowTable& at = rows[row];
      const KvView& kv = sequences[at.sequence];
      const bool goes_on =
          row > 0 && rows[row - 1].sequence == at.sequence && rows[row - 1].position + 1 == at.position;
      if (!goes_on) {
        const std::byte* before = kv.state_before(layer, at.position);
        runs_.push_back({row, 0, before != nullptr ? reinterpret_cast<const float*>(before) + offset : nullptr});
      }
      ++runs_.back().count;
      after_.push_back(reinterpret_cast<float*>(kv.state_after(layer, at.position)) + offset);
    }
  }

  [[nodiscard]] std::span<const Run> runs() const noexcept { return runs_; }
  // Returns the memory to which the state after the row is written.
  [[nodiscard]] float* after(std::size_t row) const noexcept { return after_[row]; }

 private:
  std::vector<Run> runs_;
  std::vector<float*> after_;  // [rows]
};

}  // namespace tessera::cpu
