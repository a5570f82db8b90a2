// The executor of rank 0 of ranks that are processes: sends each step to the others and executes it with them.
#pragma once

#include <memory>
#include <vector>

#include "model/step/step_executor.hpp"
#include "ranks/model_division.hpp"
#include "ranks/rank_backend.hpp"
#include "ranks/socket_ranks.hpp"

namespace tessera::detail {

class RemoteRanks final : public StepExecutor {
 public:
  // `model` is rank 0's part. `backend`, `pools` and `pages` belong to the engine; the pools must keep_copies().
  RemoteRanks(std::unique_ptr<SocketRanks> ranks, std::unique_ptr<Model> model, RankBackend& backend, KvPools pools, PageMemory& pages);

  Status execute(const StepDescription& step, const StepInputs& inputs, OutputSink& sink, const std::stop_token& stop) noexcept override;
  Status guess(const StepDescription& step, std::span<float> hidden, std::span<float> logits, const std::stop_token& stop) noexcept override;
  Status reserve(const StepPages& pages) noexcept override;
  Status move(const MoveDescription& move) noexcept override;

 private:
  // Begins a step and sends it to all other ranks, and before it the layouts that they do not know. write(writer) writes the message.
  template <class Write>
  Status send(const StepPages& pages, Write write) noexcept;
  Status send_to_all() noexcept;
  // Ends a step: tells the others if it has failed here.
  Status end(Status status) noexcept;

  std::unique_ptr<SocketRanks> ranks_;
  std::unique_ptr<Model> model_;
  KvPools pools_;
  BackendExecutor executor_;
  std::size_t layouts_ = 0;  // that the others know
  std::vector<std::byte> message_;
  bool has_gone_on_ = true;  // with the last step
  Status failed_ = {};       // the others may not have what a step has changed: nothing works any more
};

}  // namespace tessera::detail
