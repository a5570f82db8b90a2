// Executes the steps of rank 0 on a rank in another process.
#pragma once

#include <memory>
#include <vector>

#include "model/step/step_executor.hpp"
#include "ranks/processes/layer_pages.hpp"
#include "ranks/processes/own_pages.hpp"
#include "ranks/processes/rank_adapters.hpp"
#include "ranks/rank_backend.hpp"
#include "ranks/processes/process_ranks.hpp"
#include "ranks/vote_sink.hpp"

namespace tessera::detail {

class RankSteps {
 public:
  // `votes`: whether rows of steps may vote.
  RankSteps(ProcessRanks& ranks, const Model& model, RankBackend& backend, OwnPages& pages, RankAdapters& adapters, std::uint32_t step_rows,
            bool votes)
      : ranks_(ranks), model_(model), pages_(pages), adapters_(adapters), executor_(model, backend, pages), step_rows_(step_rows), votes_(votes) {}

  // Executes one message of rank 0. `step`: the number of the sender's step. If a step fails, the error is sent to the other ranks, and
  // execute() returns success, because this rank can execute the next message. Errors: device_error, the message is not valid.
  Status execute(std::span<const std::byte> message, std::uint64_t step);
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  Status add_layout(std::span<const std::byte> message);
  Status forget(std::span<const std::byte> message);
  Status send_votes(const Status& done);
  Status compute(std::span<const std::byte> message);
  Status move(std::span<const std::byte> message);
  // Answers a message that reads or writes pages, or gives an adapter.
  Status answer(std::span<const std::byte> message);
  Status read_or_write(std::span<const std::byte> message, std::vector<std::byte>& reply);
  // states: the pages are those of a step, which also writes recurrent states, if the model has any.
  enum class Writes : std::uint8_t { states, no_states };
  [[nodiscard]] bool is_sound(const StepPages& pages, Writes writes) const noexcept;
  [[nodiscard]] bool has_pages(const StepPages& pages, const SequencePages& of, std::uint64_t position) const noexcept;
  [[nodiscard]] bool is_sound(const StepDescription& step, std::size_t embeddings) const noexcept;

  ProcessRanks& ranks_;
  const Model& model_;
  OwnPages& pages_;
  RankAdapters& adapters_;
  BackendExecutor executor_;
  std::uint32_t step_rows_;
  bool votes_;
  std::uint64_t steps_ = 0;
  bool has_failed_ = false;  // whether the last step failed here
  StepDescription step_;
  MoveDescription move_;
  LayerPages part_;
  PageAddresses addresses_;
  std::vector<std::byte> reply_;
  std::vector<float> values_;
  std::vector<const float*> embeddings_;
  std::vector<const backend::AdapterWeights*> weights_;
  VoteSink sink_;
};

}  // namespace tessera::detail
