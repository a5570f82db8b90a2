// Counts votes on the device, for token budgets: how much the step's voting rows attend to each key (kernels/attention/votes.hpp). When the
// step ends, the device's counts are added to the sums that the host keeps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "cuda/kernel_table.hpp"
#include "cuda/kernels/attention/votes.hpp"
#include "cuda/step_arena.hpp"

namespace tessera::cuda {

class VoteCounter {
 public:
  // Allocates the buffers for the most voters. take(bytes) returns memory of the device.
  template <class Take>
  void lay_out(const backend::WorkspaceShape& shape, Take take) noexcept {
    stride_ = static_cast<std::uint32_t>(shape.vote_keys);
    most_ = shape.voters;
    if (most_ == 0) return;
    scores_ = reinterpret_cast<float*>(take(std::uint64_t{most_} * shape.max_heads * stride_ * sizeof(float)));
    sums_ = reinterpret_cast<std::uint64_t*>(take(std::uint64_t{most_} * stride_ * sizeof(std::uint64_t)));
  }
  // Returns the bytes that the counter needs in the host's memory.
  [[nodiscard]] static std::uint64_t host_bytes(const backend::WorkspaceShape& shape) noexcept {
    return std::uint64_t{shape.voters} * shape.vote_keys * sizeof(std::uint64_t);
  }
  Status reserve_host();

  // Begins a step with these voters. Errors: internal, more voters or keys than there is room for.
  Status begin(const Device& device, StepArena& arena, std::span<const backend::RowVotes> votes, std::span<const backend::RowTable> rows);
  // Stops the count: no further row of this step votes.
  void stop() noexcept { counts_ = false; }
  [[nodiscard]] bool counts() const noexcept { return counts_; }
  // Adds the votes of one layer's attention. count() itself sets voters, buffers and units in `args`.
  Status count(const Device& device, Kernel kernel, VoteArgs args) const;
  // fetch() starts the copy of the step's votes to the host. add(), after a wait for the device, adds them to the voters' sums.
  Status fetch(const Device& device);
  void add() noexcept;

 private:
  float* scores_ = nullptr;
  std::uint64_t* sums_ = nullptr;  // [most_, stride_]
  std::uint32_t most_ = 0, stride_ = 0;
  const std::uint32_t* rows_ = nullptr;  // [voters], on the device
  std::vector<backend::RowVotes> voters_;
  std::vector<std::uint64_t> host_;  // [most_, stride_]
  bool counts_ = false;
};

}  // namespace tessera::cuda
