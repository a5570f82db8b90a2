// Executes the steps of rank 0 on a rank in another process.
#pragma once

#include <memory>
#include <vector>

#include "model/step/step_executor.hpp"
#include "ranks/own_pages.hpp"
#include "ranks/rank_backend.hpp"
#include "ranks/socket_ranks.hpp"

namespace tessera::detail {

class RankSteps {
 public:
  RankSteps(SocketRanks& ranks, const Model& model, RankBackend& backend, OwnPages& pages, std::uint32_t step_rows)
      : ranks_(ranks), model_(model), pages_(pages), executor_(model, backend, pages), step_rows_(step_rows) {}

  // Executes one message of rank 0. `step`: the number of the sender's step. A step that fails is told to the other ranks, and is no error
  // here. Errors: device_error, the message makes no sense.
  Status execute(std::span<const std::byte> message, std::uint64_t step);
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  Status add_layout(std::span<const std::byte> message);
  Status compute(std::span<const std::byte> message);
  Status move(std::span<const std::byte> message);
  [[nodiscard]] bool is_sound(const StepPages& pages, std::span<const PageCopy> copies) const noexcept;
  [[nodiscard]] bool has_pages(const StepPages& pages, const SequencePages& of, std::uint64_t position) const noexcept;
  [[nodiscard]] bool is_sound(const StepDescription& step, std::size_t embeddings) const noexcept;

  SocketRanks& ranks_;
  const Model& model_;
  OwnPages& pages_;
  BackendExecutor executor_;
  std::uint32_t step_rows_;
  std::uint64_t steps_ = 0;
  bool has_failed_ = false;  // the last step
  StepDescription step_;
  MoveDescription move_;
  std::vector<float> values_;
  std::vector<const float*> embeddings_;
};

}  // namespace tessera::detail
